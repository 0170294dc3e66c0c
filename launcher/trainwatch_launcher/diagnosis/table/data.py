"""Failures of what is read and written: files, file systems, checkpoints, data loading, model hubs.

After errno(3) and Python's OSError, caffe2/serialize/inline_container.cc, safetensors, transformers, huggingface_hub,
datasets, h5py, pyarrow, PIL, and torch/utils/data/dataloader.py.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, Kind

DISK = Kind(
    "disk_full", "data", CAUSE,
    "Free space on the file system that the line names or raise its quota (df -h, df -i, quota), and keep fewer "
    "checkpoints.",
    says=[
        "No space left on device",
        ("disk quota exceeded|[errno 122]", r"disk quota exceeded|\[errno 122\]"),
        ("errno 28|os error 28", r"\[errno 28\]|os error 28\b"),
        ("enospc", ""),
        ("ephemeral", r"low on resource: ephemeral-storage|exceeds? .{0,60}ephemeral[- ]storage|ephemeral local "
                      r"storage usage"),
        ("emptydir", r"usage of emptydir volume .{0,80}exceeds the limit"),
        ("disk space|insufficient space", r"not enough (?:free )?disk space|insufficient (?:disk )?space"),
        ("disk full|disk is full", r"disk (?:is )?full"),
    ],
    raises=[("unexpected pos", r"unexpected pos \d+ vs \d+"), ("pytorchstreamwriter", r"pytorchstreamwriter failed "
                                                                                      r"writing")],
)  # fmt: skip

HUB = Kind(
    "hub_access", "data", CAUSE,
    "Log in (HF_TOKEN) and accept the model's terms, or download it once where there is network and point the job at "
    "the "
    "local folder with HF_HUB_OFFLINE=1.",
    says=[
        ("localentrynotfounderror", ""),
        ("gatedrepoerror|access", r"gatedrepoerror|cannot access gated repo|access to model .{0,120}is restricted"),
        ("gated repo", ""),
        ("repositorynotfounderror|remoteentrynotfounderror|revisionnotfounderror",
         r"repositorynotfounderror|revisionnotfounderror|remoteentrynotfounderror"),
        ("revisionnotfounderror", ""),
        ("hfhubhttperror|request", r"hfhubhttperror|bad ?request ?error.{0,60}hub"),
        ("offline|outgoing traffic has been disabled",
         r"offlinemodeisenabled|offline mode is enabled|hf_hub_offline|outgoing traffic has been disabled"),
        ("couldn't connect to", r"we couldn't connect to 'https?://|couldn't connect to the hub"),
        ("couldn't reach", r"couldn't reach .{0,120}(?:on the hub|hugg|datasets)"),
        ("datasetnotfounderror", ""),
        ("the request model|the request dataset", r"the request (?:model|dataset): \S{1,120} does not exist"),
        ("valid model identifier", r"is not a local folder and is not a valid model identifier"),
        ("token is required|token|not logged in",
         r"token is required|localtokennotfounderror|invalid user token|not logged in"),
        ("huggingface.co", r"(?:(?:client|server) error|(?:401|403|404|429|50\d)).{0,120}huggingface\.co"
                           r"|host='huggingface\.co'"
         r"|huggingface\.co.{0,200}(?:timed out|connection|resolve|unreachable|reset|max retries)"),
        ("hf-mirror.com", r"hf-mirror\.com.{0,200}(?:timed out|connection|error|40[134]|429)"),
        ("modelscope", r"modelscope.{0,200}(?:notexisterror|http ?error|connection|40[134]|not exist)"),
        ("too many requests", r"\b429\b.{0,60}too many requests"),
    ],
)  # fmt: skip

PERMISSION = Kind(
    "permission", "data", CAUSE,
    "Check owner and mode of the path that the line names (ls -ln) against the user of the job (id); chmod +x what "
    "should "
    "be run.",
    says=[
        ("errno 13", r"\[errno 13\]"),
        ("permission denied", r"(?<!or )permission denied(?! \(publickey)"),
        ("operation not permitted", ""),
        ("errno 1]", r"\[errno 1\]"),
        ("read-only file system|[errno 30]", r"read-only file system|\[errno 30\]",
         "The path is mounted read-only: write somewhere else, or mount it read-write."),
        ("accessdenied|access denied", r"\baccessdenied\b|access denied"),
        ("os error 13", ""),
    ],
    raises=[("permissionerror", r"^permissionerror"),
            ("unable to locate credentials", "", "No key for the object store: set its credentials in the job's "
                                                 "environment, or mount its file."),
            ("denied on resource", r"permission '\S{1,80}' denied on resource")],
)  # fmt: skip

STORAGE = Kind(
    "storage_io", "data", CAUSE,
    "The mount is at fault, not the program: look at it on that node (mount, df, dmesg), remount it or move the job to "
    "another node.",
    says=[
        ("stale file handle|stale nfs file handle|[errno 116]", r"stale (?:nfs )?file handle|\[errno 116\]"),
        ("input/output error", ""),
        ("errno 5]", r"\[errno 5\]"),
        ("remote i/o error|[errno 121]", r"remote i/o error|\[errno 121\]"),
        ("transport endpoint", r"transport endpoint is not connected|transport endpoint shutdown"),
        ("host is down|[errno 112]", r"host is down|\[errno 112\]"),
        ("structure needs cleaning", ""),
        ("not responding", r"nfs: server \S{1,80} not responding"),
        ("i/o error|ext4-fs error", r"\bi/o error,? dev|metadata i/o error|buffer i/o error|ext4-fs error"),
        ("failedmount|mountvolume.", r"\bfailedmount\b|mountvolume\.\w{1,30} failed"),
        ("lustre", r"lustre.{0,80}(?:evicted|connection .{0,40}lost|timed out)"),
        ("unable to lock file|lock file", r"unable to (?:\w+ )?lock file"),
        ("device or resource busy", r"device or resource busy.{0,40}\.nfs"),
    ],
    raises=[("errno 107", r"\[errno 107\]"), ("errno 108", r"\[errno 108\]"), ("errno 19", r"\[errno 19\]"),
            ("[errno 11]", r"\[errno 11\]")],
)  # fmt: skip

MISSING = Kind(
    "file_missing", "data", CAUSE,
    "Check that the path exists on this very node (mounts differ), that data was staged there, and that a relative "
    "path "
    "fits the working directory.",
    raises=[
        ("missingconfigexception", ""),
        ("filenotfounderror", r"^(?:\w{1,60}\.){0,6}filenotfounderror"),
        ("notadirectoryerror", ""),
        ("no such file or directory|[errno 2]", r"no such file or directory|\[errno 2\]"),
        ("no file named", r"error no file named|no file named .{0,120}found in directory"),
        ("does not appear to have a file named", ""),
        ("repo id must", r"repo id must (?:be in the form|use alphanumeric).{0,200}'(?:/|\./|\.\./)",
         "The path is no directory here, so it was taken for a name on the hub: check the path on this node."),
        ("does not exist", r"(?:file|path|director(?:y|ies)|checkpoint|dataset|folder)\b.{0,200}does not exist"),
        ("not found", r"(?:file|path|directory|checkpoint|dataset) \S{0,200} ?(?:was )?not found"),
        ("can't load|can't find", r"can't (?:load|find) .{0,60}for '(?:/|\./)"),
        ("unable to open file|open file", r"unable to (?:\w+ )?open file.{0,80}(?:no such|errno = 2)"),
        ("incorrect path_or_model_id", ""),
        ("cannot be found at the path prefix", ""),
        ("nosuchkey|nosuchbucket", r"\(?nosuch(?:key|bucket)\b"),
        ("datafilesnotfounderror", ""),
    ],
    prints=[
        ("cannot find primary config", ""),
        ("could not open image", r"could not open image .{1,600}no such file"),
        ("can't open file", r"can't open file '?.{0,300}no such file"),
        ("no such file or directory", r": no such file or directory$"),
        ("cannot access|no such file", r"cannot (?:access|stat|open) '?.{0,200}no such file"),
    ],
)  # fmt: skip

ARTIFACT = Kind(
    "bad_artifact", "data", CAUSE,
    "The file is damaged or made for another model or version: check its size and checksum, fetch or convert it "
    "again, or "
    "resume from the checkpoint before it.",
    says=[
        ("pytorchstreamreader failed", ""),
        ("central directory", r"failed finding central directory"),
        ("archive is corrupted", r"invalid header or archive is corrupted"),
        ("might be corrupted", ""),
        ("deserializing header", ""),
        ("metadataincompletebuffer|headertoosmall|headertoolarge|invalidheader",
         r"metadataincompletebuffer|headertoo(?:large|small)|invalidheader"),
        ("safetensorerror|safetensor_error", r"safetensor_?error"),
        ("loading state_dict", r"error\(s\) in loading state_dict"),
        ("size mismatch for", ""),
        ("size mismatch between saved", ""),
        ("attempting to deserialize object on cuda", r"attempting to deserialize object on cuda device \d",
         "It was saved from a GPU that this process does not see: torch.load(..., map_location='cpu' or its own GPU)."),
        ("shape mismatch for loaded", ""),
        ("missing key in checkpoint", ""),
        ("key(s) in state_dict", r"(?:missing|unexpected) key\(s\) in state_dict"),
        ("unpicklingerror", ""),
        ("pickle data was truncated", ""),
        ("ran out of input", ""),
        ("invalid load key", ""),
        ("weights only load failed", ""),
        ("badzipfile|file is not a zip file", r"badzipfile|file is not a zip file"),
        ("badgzipfile|compressed file ended before|not a gzipped file",
         r"badgzipfile|not a gzipped file|compressed file ended before"),
        ("image file is truncated|image", r"image file is truncated|unidentifiedimageerror|cannot identify image file"),
        ("unidentifiedimageerror", ""),
        ("data did not match any variant", ""),
        ("unable to load weights", ""),
        ("trying to set a tensor of shape", ""),
        ("loaded state dict", r"loaded state dict (?:contains|has)"),
        ("parquet magic bytes|arrow", r"parquet magic bytes not found|not an arrow file|arrowinvalid"),
        ("arrowinvalid", ""),
        ("truncated file|file signature not found", r"truncated file: eof|file signature not found"),
        ("file signature not found", ""),
        ("datalosserror|checksum does not match|data_loss:", r"datalosserror|data_loss:|checksum does not match"),
        ("checkpoint", r"checkpoint .{0,120}(?:corrupt|truncated|incomplete|is not compatible|does not match)"),
        ("corrupt", r"corrupt(?:ed)? (?:checkpoint|file|archive|weights|shard|data file|jpeg|tar)"),
        ("tar|readerror:", r"(?:tarfile\.)?readerror: (?:unexpected end of data|truncated|not a gzip|file could not)"),
    ],
    raises=[("jsondecodeerror", r"jsondecodeerror.*\n.*(?:from_pretrained|tokeniz|configuration_utils|checkpoint"
                                r"|safetensors)")],
)  # fmt: skip

LOADER = Kind(
    "dataloader", "data", CAUSE,
    "A data worker died: look at that host's memory and kernel log, and run once with num_workers=0 to see the error "
    "itself.",
    says=[
        ("dataloader worker", r"dataloader worker \(pid(?:\(s\))? .{0,80}(?:is killed by signal|exited unexpectedly)"),
        ("dataloader timed out", ""),
        ("dataloader timeout", ""),
        ("items of ancdata", "", "Too many open files between data workers: ulimit -n higher, or "
         "torch.multiprocessing.set_sharing_strategy('file_system')."),
        ("pin memory thread exited", ""),
    ],
)  # fmt: skip
