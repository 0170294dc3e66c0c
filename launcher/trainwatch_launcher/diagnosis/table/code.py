"""Failures of the program and of how it was started.

After CPython's import machinery, ld.so, argparse, click, hydra and omegaconf, pydantic, DeepSpeed, bash and dash, the
container runtimes and Slurm's launcher.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, Kind

DEPENDENCY = Kind(
    "dependency", "code", CAUSE,
    "Install the missing or fitting version into the very environment that the job uses (python -m pip list there), "
    "in the image rather than at start.",
    says=[
        ("modulenotfounderror", ""),
        ("glibc", r"version [`']?glibc(?:xx)?_[\d.]+|glibcxx_[\d.]+.{0,4} not found"),
        ("undefined symbol", ""),
        ("cannot open shared object file", ""),
        ("cxxabi_", r"version [`']?cxxabi_[\d.]+"),
        ("versionconflict|distributionnotfound", r"pkg_resources\.\S{0,40}(?:versionconflict|distributionnotfound)"),
        ("normal functioning of this module", ""),
        ("packagenotfounderror", ""),
        ("could not find conda environment", ""),
        ("compiled using numpy", r"compiled using numpy 1"),
        ("binary incompatibility", ""),
        ("numpy.core.multiarray failed", ""),
        ("no matching distribution found", ""),
        ("could not find a version that satisfies", ""),
        ("cuda_home environment variable|cuda_home does not exist",
         r"cuda_home environment variable is not set|cuda_home does not exist"),
        ("ninja is required", ""),
        ("error building extension", ""),
        ("cudamismatch|installed cuda version", r"cudamismatchexception|installed cuda version .{0,40}does not match"),
        ("different cuda", r"compiled with different cuda"),
        ("torchvision::nms", ""),
        ("failed to find c compiler", ""),
        ("incompatible architecture|invalid elf header|wrong elf class",
         r"wrong elf class|incompatible architecture|invalid elf header"),
        ("requires the", r"requires the \S{1,60} library but it was not found"),
        ("no module named 'encodings'|fatal python error: init_",
         r"fatal python error: init_|no module named 'encodings'"),
    ],
    raises=[
        ("no module named", r"no module named \S"),
        ("importerror", r"^importerror"),
        ("has no attribute", r"module 'numpy' has no attribute '(?:int|float|bool|object|str|float_|typedict|sctypes"
                             r"|product)'"),
        ("installed|is required", r"\S{1,40} (?:is required|must be installed|is not installed)"),
    ],
    prints=[("no module named", r"python[\d.]{0,6}(?:\.exe)?: no module named \S")],
    softly=[("no module named", r"no module named \S")],
)  # fmt: skip

USAGE = Kind(
    "usage_error", "code", CAUSE,
    "Correct the argument or setting that the line names; the usage above it lists what is accepted.",
    says=[
        ("unrecognized arguments", r"error: unrecognized arguments",),
        ("arguments are required", r"error: the following arguments are required"),
        ("error: argument|: error:",
         r": error: (?:argument|ambiguous option|one of the arguments|parser key|unrecognized)"),
        ("no such option", r"error: no such option"),
        ("missing option|error: missing", r"error: missing (?:option|argument|parameter)"),
        ("could not override", ""),
        ("error merging override", ""),
        ("configcompositionexception", ""),
        ("omegaconf.errors.", r"omegaconf\.errors\.\w+"),
        ("omegaconf.errors", ""),
        ("missingmandatoryvalue|missing mandatory value", r"missingmandatoryvalue|missing mandatory value"),
        ("missing mandatory value", ""),
        ("deepspeedconfigerror|check batch related parameters", r"deepspeedconfigerror|check batch related parameters"),
        ("check batch related parameters", ""),
        ("not used by the hfargumentparser", ""),
        ("unrecognizedflagerror|unknown command line flag|flags parsing error",
         r"unrecognizedflagerror|unknown command line flag|flags parsing error"),
        ("flags parsing error", ""),
        ("not enough slots", r"not enough slots available",),
        ("environment variable", r"environment variable (?:rank|world_size|master_addr|master_port) "
                                             r"expected",
         "Start it with torchrun (or srun, mpirun), or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."),
        ("lexererror|overrideparseexception", r"lexererrorexception|overrideparseexception"),
    ],
    raises=[
        ("validationerror", r"^(?:\w{1,60}\.){0,6}validationerror: \d+ validation errors?"),
        ("argumenterror|argumenttypeerror", r"^(?:argparse\.)?argument(?:type)?error"),
        ("yaml.constructor.|yaml.scanner.|yaml.parser.", r"yaml\.(?:scanner|parser|constructor)\.\w+"),
        ("yaml.parser", ""),
        ("tomldecodeerror", ""),
        ("usageerror", r"^(?:click|wandb|typer)\S{0,60}usageerror"),
    ],
    prints=[
        ("invalid option|option", r": (?:invalid|unrecognized|unknown) option\b"),
        ("could not consume arg", ""),
        ("no such option|missing option|missing argument|invalid value for|got unexpected extra|unrecognized options:",
         r"^\W{0,4}(?:no such option|unrecognized options: -|missing (?:option|argument) |invalid value for '"
         r"|got unexpected extra argument)"),
        ("error: parser key", r"^error: parser key"),
        (": error:", r"^(?!srun|slurm|sbatch|salloc|scontrol|mpirun)[\w./-]{1,80}(?: [\w-]{1,30})?: error: "
                     r"(?!\*)(?:[a-z]|-)"),
        ("sbatch: error|salloc: error:",
         r"(?:sbatch|salloc): error: (?!batch job submission failed: .{0,60}(?:limit|unavailable))"),
        ("invalid|srun:",
         r"srun: (?:error|fatal): .{0,40}(?:invalid|unable to create step|requested (?:node|partition))"),
    ],
)  # fmt: skip

COMMAND = Kind(
    "command_error", "code", CAUSE,
    "Check the command's spelling and PATH in the job's own shell (is the environment activated there?), and that bash "
    "scripts run under bash.",
    prints=[
        ("command not found", r": command not found"),
        ("not found", r"(?:^|/)(?:sh|dash|ash|\S{1,80}\.sh): (?:line )?\d{1,6}: .{1,200}: not found$"),
        ("executable file not found", ""),
        ("execve()", r"execve\(\): .{1,200}: no such file"),
        ("exec format error", ""),
        ("cannot execute", r"cannot execute(?: binary file|: required file not found)?"),
        ("syntax error", r"(?:^|: |\d: )syntax error(?: near unexpected|: (?:unexpected|.{0,40}unexpected|word|bad"
                         r"|unterminated|end of))"),
        ("unexpected eof", r"line \d{1,6}: unexpected eof while looking"),
        ("bad interpreter", ""),
        ("bad substitution", ""),
        ("unbound variable", ""),
        ("illegal option -o pipefail", ""),
        ("argument list too long", ""),
        ("failed to run command", r"(?:nohup|env|timeout|nice): failed to run command"),
        ("no such file or directory", r"^(?:/usr/bin/)?env: .{1,200}no such file or directory"),
        ("unable to find executable|executable",
         r"(?:unable|could not|failed) to find (?:an )?executable|could not execute the "
                                      r"executable"),
        ("oci runtime", r"oci runtime (?:create|exec) failed.{0,200}(?:not found|no such file)"),
    ],
    raises=[("no such file or directory:",
             r"no such file or directory: '(?:torchrun|python3?|bash|sh|srun|mpirun|deepspeed"
                                  r"|nvidia-smi|accelerate)'")],
)  # fmt: skip

PYTHON = Kind(
    "python_error",
    "code",
    CAUSE,
    "Go to the frame and the line; the values there are what the message is about.",
    says=[("syntaxerror|indentationerror:|taberror:", r"^\s*(?:syntax|indentation|tab)error: ")],
)
