"""Failures of the numbers, ends that somebody wanted, and silence.

After torch.amp, DeepSpeed's and fairseq's loss scalers, Megatron-LM's checks, detectron2; Slurm's slurmstepd and srun,
PBS, LSF, Kubernetes' events, torch.distributed.elastic's signal handling.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, STOP, Kind

NAN = Kind(
    "nan_loss", "numerics", CAUSE,
    "Go back to the last good checkpoint with a lower learning rate or another data order, and look at the batch "
    "where it "
    "began; bf16 instead of fp16, gradient clipping, warm-up.",
    says=[
        ("floatingpointerror", ""),
        ("became infinite or nan", ""),
        ("loss is|loss became|loss was|loss =|loss :",
         r"\bloss (?:is|was|became|=|:)? ?(?:nan|inf)\w{0,8}.{0,60}(?:stop|abort|exit|terminat|diverg)"),
        ("loss scale", r"loss scale (?:is )?already at minimum|minimum loss scale (?:is )?reached|loss scale "
                       r".{0,40}(?:below|reached) min"),
        ("returned nan values", ""),
        ("found nan|found inf", r"found (?:nan|inf|infinite) in (?:local )?(?:forward|grad|loss|input)"),
        ("unexpected result nan|unexpected result inf", r"unexpected result (?:nan|inf)"),
        ("non-finite|nonfinite", r"(?:is|are|has|with|contains?) non-?finite|non-?finite (?:loss|grad|values?)"),
        ("probability tensor contains", ""),
        ("diverged with loss|nan loss encountered|training diverged",
         r"diverged with loss|training diverged|nan loss encountered"),
        ("training_step", r"loss returned in `?training_step`? is (?:nan|inf)"),
        ("tensor had nan|tensor had inf", r"tensor had (?:nan|inf)"),
        ("nan", r"\b(?:nan|nans?/infs?|nan or inf)(?: values?| loss| gradients?)? (?:was |were |is )?(?:detected"
                r"|encountered|found)\b"),
    ],
)  # fmt: skip

LIMIT = Kind(
    "time_limit", "stopped", STOP,
    "Resume from the last checkpoint in a new job, ask for more time, or save on the scheduler's warning signal "
    "(--signal=B:USR1@300).",
    says=[
        ("due to time limit", r"(?:cancelled|canceled) at .{0,60}due to time limit|due to time limit"),
        ("deadlineexceeded|job was active longer than",
         r"\bdeadlineexceeded\b.{0,120}(?:active longer|deadline)|job was active longer than"),
        ("active longer than specified deadline", ""),
        ("walltime|wall time", r"walltime .{0,60}exceeded limit|exceeded .{0,20}wall ?time"),
        ("term_runlimit|reaching lsf run time limit", r"term_runlimit|reaching lsf run time limit"),
        ("sending signal", r"^timeout: sending signal (?:term|kill) to command"),
        ("time limit", r"(?:job|step|task) .{0,60}(?:reached|exceeded) (?:the |its )?(?:run ?)?time limit"),
    ],
)  # fmt: skip

PREEMPTED = Kind(
    "preempted", "stopped", STOP,
    "The platform took the node back: resume from the last checkpoint when it gives another, and save on the warning "
    "signal.",
    says=[
        ("due to preemption", r"(?:cancelled at \S{1,40} )?due to preemption"),
        ("due to node failure", r"(?:cancelled at \S{1,40} )?due to node failure", "A node of the job failed: have "
                                                                                   "it looked at, exclude it, and "
                                                                                   "resume."),
        ("sigusr", r"\bsigusr[12]\b.{0,120}requeu"),
        ("auto-requeue signal", ""),
        ("job requeue|job", r"(?:cancelled at \S{1,40} )?due to job requeue|requeu(?:ed|ing) (?:the )?job|job "
                        r".{0,30}(?:has been )?requeued"),
        ("requeued", r"job .{0,40}requeued"),
        ("preempt", r"\bpreempted by\b|preemption (?:notice|event|request)|(?:received|got|caught) .{0,20}preemption"
                    r"|will be preempted|(?:was|being"
                    r"|been) preempted"),
        ("evicted", r"\bevicted\b.{0,160}|the pod was evicted|pod .{0,60}evicted"),
        ("tainmanagereviction", ""),
        ("evictedduetopreempted", ""),
        ("taintmanagereviction", ""),
        ("spot", r"spot (?:instance )?(?:interruption|termination|reclaim|instance .{0,30}(?:terminated|reclaimed))"),
        ("instance-action", r"instance-action.{0,60}(?:terminate|stop)"),
        ("draining|node",
         r"(?:cordon(?:ed|ing)?|drain(?:ed|ing)?) node|node .{0,60}(?:drain(?:ed|ing)|is shutting down)"),
        ("nodeshutdown|terminated in response to imminent node shutdown|node is shutting down",
         r"\bnodeshutdown\b|node is shutting down|terminated in response to imminent node shutdown"),
        ("nodenotready", r"\bnodenotready\b"),
        ("node failure", r"srun: error: node failure on"),
    ],
)  # fmt: skip

CANCELLED = Kind(
    "cancelled", "stopped", STOP,
    "A person or their terminal ended it; start long runs with nohup, tmux or the scheduler so that closing a "
    "terminal does "
    "not end them.",
    says=[
        ("death signal", r"received (?:signals\.sig(?:int|hup)|[12]) death signal"),
        ("got signal: ", r"process \d{1,9} got signal: [12]\b"),
        ("cancelled at", r"\*\*\* (?:job|step) \S{1,60} on \S{1,80} cancelled at \S{1,40}(?: by \S{1,40})? \*\*\*"),
        ("scancel", r"(?:by|with) scancel"),
        ("interrupted by|interrupted from keyboard", r"interrupted by (?:the )?user|interrupted from keyboard"),
        ("srun: forcing job termination", ""),
        ("srun: sending ctrl-c", ""),
        ("term_owner|job killed by owner", r"term_owner|job killed by owner"),
        ("killing job", r"^mpi(?:run|exec): killing job"),
        ("hangup|received", r"^hangup$|sighup received|received sighup"),
    ],
    raises=[("keyboardinterrupt", r"^keyboardinterrupt"), ("signal: ", r"signalexception: .{0,60}got signal: [12]\b")],
    prints=[("keyboardinterrupt", r"^keyboardinterrupt"), ("aborted!", r"^aborted!$"),
            ("interrupted", r"^(?:\^c)?(?:training )?interrupted\b")],
)  # fmt: skip

HANG = Kind(
    "hang", "quiet", CAUSE,
    "Take the stacks of all ranks before you end it (D, or trainwatch stacks): who differs from the many is behind.",
    says=[
        ("timeout (", r"^timeout \(\d{1,3}:\d\d:\d\d(?:\.\d+)?\)!"),
        ("hang|stuck|to be hung|appears hung|seems hung|is hung",
         r"\bhang (?:was )?detected|(?:job|training|process|rank \d+) (?:is|seems|appears) (?:to be "
                 r")?(?:hung|hanging|stuck)"),
        ("heartbeat", r"did not (?:get|receive) (?:\w+ )?heartbeat.{0,80}|no heartbeat (?:from rank|received)"),
        ("no progress|no training progress", r"no (?:training )?progress (?:for|in|since)\b"),
        ("stalled", r"(?:training|rank \d+|process) (?:has )?stalled\b"),
        ("blocked for more than", r"task \S{1,60} blocked for more than \d+ seconds"),
    ],
)  # fmt: skip
