"""Failures of talking to each other: NCCL and its relatives, the network below, the store and the meeting at the start.

After ProcessGroupNCCL.cpp, NCCLUtils.cpp, TCPStore.cpp and socket.cpp of PyTorch, NCCL's net_ib.cc, socket.cc and
bootstrap.cc, gloo's tcp transport, torch.distributed.elastic, JAX's coordination service, Ascend's HCCL.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, COLLATERAL, Kind

PORT = Kind(
    "port_in_use", "comm", CAUSE,
    "Another process has the port: end what an earlier job left behind, or choose another --master-port or "
    "--rdzv-endpoint (port 0 finds a free one).",
    says=[
        "EADDRINUSE",
        ("failed to bind to address", ""),
        ("address already in use", ""),
        ("failed to bind", r"server socket has failed to bind"),
        ("failed to listen", r"server socket has failed to listen on any"),
        ("port", r"port \d{1,5} (?:is )?(?:already )?in use|ports? .{0,40}(?:is|are) already in use"),
    ],
)  # fmt: skip

PEER = Kind(
    "peer_lost", "comm", COLLATERAL,
    "This rank only lost another one: look for the rank that ended first.",
    says=[
        ("remote process exited|ncclremoteerror",
         r"ncclRemoteError|remote process exited or there was a network error"),
        ("ncclremoteerror", ""),
        ("closed by remote peer|connection closed by",
         r"connection closed by (?:remote )?peer|connection closed by remote"),
        ("connection closed by peer", ""),
        ("should dump", r"failed to check the .?should dump.? flag"),
        ("sendbytes failed|recvbytes failed on", r"(?:send|recv)bytes failed on"),
        ("failed to recv|failed", r"failed to recv, got \d+ bytes|recvvalue failed|recvvector failed"),
        ("store->get", r"store->get\(.{0,80}got error: (?:connection (?:reset|closed)|broken pipe|failed to recv)"),
        ("error: ", r"is setting up nccl communicator.{0,200}got error: (?:connection reset|broken pipe|failed to "
                    r"recv)"),
        ("connection reset by peer", r"(?:gloo|tcp/pair|read error|write error|socketprogress"
                                     r"|recv).{0,160}connection reset by peer"),
        ("monitoredbarrier", r"successfully reached monitoredbarrier, but received errors"),
        ("] child process with pid", r"^\[rank: \d{1,6}\] child process with pid \d{1,9} terminated with code"),
        ("actor died|actor", r"(?:actordiederror|rayactorerror|the actor (?:died|is dead))"),
        ("actordiederror", ""),
        ("rayactorerror", ""),
        ("stopped sending heartbeats|heartbeat timeout",
         r"unhealthy \(stopped sending heartbeats\)|task .{0,80}heartbeat timeout"),
        ("another task died", r"most likely indicates that another task died"),
        ("socket closed", r"unavailable(?:error)?: .{0,60}socket closed"),
        ("sending", r"sending (?:signal )?sig(?:term|kill) to (?:all|remaining|other)"),
        ("peer|remote rank", r"remote (?:rank|peer).{0,40}(?:has )?(?:exited|disconnected|been closed)"),
        ("mpi_abort|pmix_abort was invoked on rank", r"(?:mpi_abort|pmix_abort) was invoked on rank"),
        ("another process in the job|one of the processes in the group died",
         r"another process in the job has failed|one of the processes in the group died"),
        "RendezvousClosedError",
        ("horovod has been shut down", ""),
    ],
    raises=[
        ("connectionreseterror|connectionabortederror", r"^(?:\w{1,60}\.){0,6}connection(?:reset|aborted)error"),
        ("brokenpipeerror", r"^brokenpipeerror"),
        ("processgroupwrapper", ""),
        ("diststoreerror", r"diststoreerror: (?:socket closed|connection (?:closed|reset)|broken pipe)"),
    ],
)  # fmt: skip

NETWORK = Kind(
    "network", "comm", CAUSE,
    "Look at the link that the line names (host, interface, switch, DNS, proxy) and at whether other jobs on those "
    "nodes "
    "see the same; try again on other nodes.",
    says=[
        ("net/ib", r"net/ib ?:.{0,80}(?:got completion|got async|port error|error)"),
        ("ibv_", r"ibv_wc_\w+|(?:call to )?ibv_\w{1,40} failed"),
        ("retry counter exceeded", r"(?:transport )?retry counter exceeded"),
        ("no route to host", ""),
        ("network is unreachable", ""),
        ("no socket interface|unable to find",
         r"no socket interface found|unable to find (?:a usable )?(?:network )?(?:interface"
                                r"|address)",
         "Name the network interface: NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME."),
        ("gloo device", r"makedeviceforinterface\(\): unsupported gloo device",
         "Name the network interface: GLOO_SOCKET_IFNAME."),
        ("connect to", r"connect to .{0,80}failed ?: ?(?:software caused|no route|connection (?:timed out|refused)"
                       r"|network)"),
        ("exceeded error retry count",
         r"returned (?:connection (?:refused|timed out)|no route|network).{0,60}exceeded error retry count"),
        ("net/socket", r"net/socket.{0,80}(?:failed|error)"),
        ("ucx", r"ucx +error|ucx_perf.{0,40}(?:timed out|unreachable)"),
        ("mlx5", r"mlx5[\w:/]{0,20} .{0,40}(?:link down|got completion with error|health (?:compromised|recovery))"),
    ],
    softly=[
        (
            "retry",
            r"retry(?:ing)?\b.{0,120}(?:\b50[0234]\b|timed out|timeout|unavailable|refused|reset|resolution)",
        ),
        ("connection refused", ""),
        ("name resolution", r"failure in name resolution"),
        ("connection timed out", ""),
    ],
)  # fmt: skip

CONNECTION = Kind(
    NETWORK.name, NETWORK.family, NETWORK.role, NETWORK.hint,
    raises=[
        ("name resolution|name or service not known",
         r"temporary failure in name resolution|name or service not known"),
        ("name or service not known", ""),
        ("connection refused", ""),
        ("connection timed out|[errno 110]", r"connection timed out|\[errno 110\]"),
        ("connection reset by peer", ""),
        ("max retries exceeded", ""),
        ("server error|gateway|internal server|service",
         r"\b50[0234] (?:server error|bad gateway|service|gateway|internal server)"),
        ("when calling the", r"\((?:slowdown|internalerror|requesttimeout|serviceunavailable|503)\) when calling the"),
        ("status|error", r"(?:http ?error|status(?: ?code)?)[ :=]{1,3}50[0234]\b"),
        ("503|http error", r"\bhttp error 50[0234]\b"),
        ("read timed out", ""),
        ("connecttimeout", ""),
        ("sslerror|certificate verify failed|ssl:", r"sslerror|certificate verify failed|ssl: "),
        ("remotedisconnected", ""),
        ("incompleteread|chunkedencodingerror|protocolerror", r"incompleteread|chunkedencodingerror|protocolerror"),
        ("endpointconnectionerror", ""),
        ("proxyerror", ""),
        ("no route", ""),
        ("urlopen error", ""),
        ("connectionerror|connectorerror", r"^(?:\w{1,60}\.){0,6}(?:client)?connect(?:ion|or)error"),
        ("commerror", r"wandb\S{0,40}commerror"),
    ],
)  # fmt: skip

RENDEZVOUS = Kind(
    "rendezvous", "comm", CAUSE,
    "The group never formed: check that all nodes were started with the same master address, port and number of nodes, "
    "and that the master's name resolves and its port is reachable from each node.",
    says=[
        ("rendezvous", r"rendezvous(?:connection|timeout|graceful|state|parameter)?(?:error|exception)\b"),
        ("clients joined", r"\d{1,7}/\d{1,7} clients joined"),
        ("client socket has timed out", ""),
        ("client socket has failed to connect", r"client socket has failed to connect to any"),
        ("c10d store has failed", ""),
        ("network addresses of", r"network addresses of .{0,120}cannot be retrieved"),
        ("gai error", ""),
        ("registertask|failed to connect to",
         r"registertask|failed to connect to (?:the )?(?:coordinat|distributed|jax)"),
        ("gcs|connect to|could not find any running ray",
         r"(?:failed to connect to|unable to connect to) (?:the )?(?:gcs|ray cluster)|could not (?:find any "
                r"running|connect to) ray"),
        ("connectfullmesh failed", ""),
        ("ssh", r"ssh: (?:could not resolve hostname|connect to host)"),
        ("orte|has lost communication|was unable", r"(?:orte|prte|prrte) (?:was unable|has lost communication)",
         "mpirun could not start on a host: check ssh from the first host to all others without a password."),
        ("host key verification failed", ""),
        ("barrier timed out", r"deadline_exceeded: .{0,200}barrier timed out"),
        ("waiting for", r"timed out (?:after .{0,30})?waiting for (?:all )?(?:nodes|workers|peers|ranks|clients)"),
    ],
    raises=[
        ("diststoreerror", r"diststoreerror: timed out"),
        ("distnetworkerror", ""),
        ("init_process_group|timed out initializing process group",
         r"timed out initializing process group|timeout.{0,80}init_process_group"),
        ("timed out initializing", ""),
        ("wait timeout|socket timeout", r"(?:socket|wait) timeout(?: after)?"),
    ],
)  # fmt: skip

ERROR = Kind(
    "nccl_error", "comm", CAUSE,
    "Run it with NCCL_DEBUG=INFO and read the first NCCL WARN line; check that each rank has a GPU of its own and "
    "that all "
    "ranks call the same collectives with the same shapes.",
    says=[
        ("ncclinvalidusage|invalid usage", r"ncclinvalidusage|nccl error.{0,120}invalid usage"),
        ("duplicate gpu detected", "", "Two ranks use the same GPU: set the device from LOCAL_RANK before the first "
         "collective."),
        ("ncclinternalerror|internal error", r"ncclinternalerror|nccl error.{0,120}internal error"),
        ("ncclsystemerror|unhandled system error", r"ncclsystemerror|nccl error.{0,120}unhandled system error"),
        ("ncclunhandledcudaerror|unhandled cuda error",
         r"ncclunhandledcudaerror|nccl error.{0,120}unhandled cuda error"),
        ("ncclinvalidargument|invalid argument", r"ncclinvalidargument|nccl error.{0,120}invalid argument"),
        ("mismatch between collectives", ""),
        ("nccl version", r"mismatched? nccl version|nccl version mismatch"),
        ("hccl error in", ""),
        ("hccl|ei0005", r"hccl.{0,80}(?:error code|failed|ei000[0-57-9])|\bei0005\b"),
        ("call hccl api failed", ""),
        ("hcom", r"hcom\w{0,30}.{0,20}(?:fail|error)"),
        ("inconsistent|op type mismatch", r"inconsistent (?:shape|size|dtype)|op type mismatch"),
    ],
    raises=[
        "NCCL communicator was aborted",
        ("distbackenderror", ""),
        ("nccl error|nccl backend error", r"nccl (?:backend )?error"),
        ("ncclerror", ""),
    ],
    softly=[("nccl warn", r"nccl warn (?!.{0,40}(?:connection closed by|cuda failure 'driver))")],
)  # fmt: skip

TIMEOUT = Kind(
    "nccl_timeout", "comm", COLLATERAL,
    "A rank did not come to this collective: look at the rank that is behind, not at those that waited; if it is only "
    "slow (a checkpoint, an evaluation), raise the timeout of init_process_group.",
    says=[
        ("collective operation timeout", r"watchdog caught collective operation timeout"),
        ("timeout at nccl work", ""),
        ("failure detected by watchdog", ""),
        ("dump signal", r"(?:observed|received a?) ?(?:flight recorder )?dump signal|received a dump signal due to a "
                        r"collective timeout"),
        ("global timeout|received a timeout", r"received a (?:global )?timeout (?:signal )?from another rank"),
        ("some nccl operations have failed or timed out", ""),
        ("watchdog got stuck|heartbeat monitor timed out|watchdog is stuck",
         r"watchdog (?:got|is) stuck|heartbeat monitor timed out"),
        ("taking the entire process down", ""),
        ("failed to pass monitoredbarrier", ""),
        ("ms for recv|ms for send operation", r"timed out waiting \d+ms for (?:recv|send) operation"),
        ("ms for send|ms for recv operation", r"timed out waiting \d+ms for (?:recv|send) operation"),
        ("notify wait timeout|timeout|ei0006|ei0002",
         r"notify wait timeout|\bei000[26]\b|hccl.{0,60}(?:execution|wait) ?timeout"),
        ("didn't join collective", ""),
        ("store->get(", r"store->get\(.{0,80}got error: (?:wait|socket) timeout"),
        ("terminating the process after attempting to dump",
         r"terminating the process after attempting to dump debug info, due to .{0,60}(?:watchdog hang|timeout)"),
        ("getting socket times out|hccl_exec_timeout", r"\bhccl_exec_timeout|getting socket times out"),
        ("application timeout caused pair closure", ""),
        ("abort", r"aborting communicators? due to (?:nccl|collective|heartbeat) ?(?:timeout)?"),
    ],
)  # fmt: skip
