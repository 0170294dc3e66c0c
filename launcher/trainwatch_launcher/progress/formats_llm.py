"""The formats of language-model and reinforcement-learning frameworks."""
from __future__ import annotations

from trainwatch_launcher.progress.names import COMMON, table
from trainwatch_launcher.progress.pairs import BLANKS, PIPES
from trainwatch_launcher.progress.table import (
    EPOCH,
    EPOCHS,
    LOSS,
    LR,
    NORM,
    NUM,
    STEP,
    STEP_OF,
    TOTAL,
    Format,
    number,
    with_loss,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from trainwatch_launcher.progress.values import Values


def updates(values: Values, match: re.Match[str]) -> Values:
    """fairseq prints the place in the epoch and the number of updates: the total belongs to the former."""
    place = int(match.group("place"))
    if abs(place - int(values.get("step", place))) <= 1:
        values.setdefault("step", place)
        values["total"] = int(match.group("places"))
    return values


def batches(values: Values, match: re.Match[str]) -> Values:
    """ESPnet glues its counters to their names, and states the batches from one line to the next."""
    values["epoch"], values["step"] = int(match.group("place")), int(match.group("last"))
    return values


MEGATRON_NAMES = table("""
loss: lm loss, lm_loss, loss, language model loss, reduced_train_loss, total loss, mlm loss, train loss
lr: learning rate, learning_rate, lr
grad_norm: grad norm, grad_norm
ms_per_iter ms: elapsed time per iteration (ms), elapsed_time_per_iteration_ms, iteration time (ms)
ms_per_iter s: elapsed time per iteration (s), train_step_timing in s, train_step_timing
tflops_per_gpu: throughput per gpu (tflop/s/gpu), model_tflops_per_gpu, tflops, approx flops per gpu
tflops_per_gpu: tflops_per_gpu, tflops_per_sec_per_gpu, model tflops/s/gpu, throughput per gpu (tflops)
samples_per_s: samples per second, samples_per_second, samples/sec
tokens_per_s_per_gpu: tokens per gpu per second (tgs), tgs, tokens_per_sec_per_gpu, tokens/sec/gpu, tokens/s/gpu
tokens_per_s_per_gpu: tokens per second per gpu, tokens per gpu per second, tokens-per-sec-per-gpu
tokens_per_s_per_gpu: tokens_per_gpu_per_second_tgs
tokens_per_s: throughput (tokens/s), tokens per second, tokens_per_sec, tokens/sec, tokens/s
samples: consumed samples, consumed_samples, consumed train samples
tokens: consumed tokens, consumed_tokens
mfu: mfu, mfu (%), model flops utilization (%)
eta_s: eta, eta time, remaining time, time remaining
""")
ITERATION = r"(?<![\w-])iteration[:=]?" + STEP + r"(?: {0,4}/" + TOTAL + r")? {0,4}\|"
NOT_TRAINING = r"valid|\beval|\btest\b"

XTUNER_NAMES = table("""
loss: total_loss, loss, reduced_llm_loss
lr: lr
grad_norm: grad_norm
ms_per_iter s: time
tokens_per_s_per_gpu: tgs
eta_s: eta
tokens: total_consumed_tokens
""")
TITAN_NAMES = table("""
grad_norm: grad_norm
tokens_per_s_per_gpu: per_device_tps, tps, wps
tflops_per_gpu: tflops
mfu: mfu
lr: lr
ms_per_iter s: elapsed_time_per_step, step_time
""")
VERL_NAMES = table("""
loss: actor/pg_loss, train/loss, actor/loss, actor/policy_loss
lr: actor/lr, train/lr
lr milli: train/lr(1e-3)
grad_norm: actor/grad_norm, train/grad_norm
mfu fraction: perf/mfu/actor, train/mfu
tokens_per_s_per_gpu: perf/throughput
ms_per_iter s: perf/time_per_step, timing_s/step, train/time(s)
reward: critic/score/mean, critic/rewards/mean
epoch: training/epoch
""")
PADDLE_NAMES = table("""
loss: loss
lr: learning_rate, lr
ms_per_iter s: avg_batch_cost, batch_cost
ms_per_iter per_s: interval_steps_per_second
samples_per_s: interval_samples_per_second
tokens_per_s_per_gpu: interval_tokens_per_second_per_device
tflops_per_gpu: interval_hardware_tflops_per_device
grad_norm: grad_norm, global_norm
epoch: epoch, progress_or_epoch
eta_s: eta
""")
PADDLE_RATES = (
    r"ips: {0,4}(?P<samples_per_s>%s) {0,2}(?:samples|images|sequences)/s" % NUM,
    r"ips_total: {0,4}(?P<tokens_per_s>%s) {0,2}tokens/s" % NUM,
    r"ips: {0,4}(?P<tokens_per_s>%s) {0,2}tokens/s" % NUM,
    r"speed: {0,4}(?P<ms_per_iter>%s) {0,2}step/s" % NUM,
    r"[|,] ETA:? {1,4}(?P<eta_s>\d[\d:]{3,12})",
)
PADDLE_UNITS = {"ms_per_iter": "per_s"}
MINDSPORE_NAMES = table("""
loss: loss
lr: lr
grad_norm: global_norm, grad_norm
ms_per_iter ms: per_step_time, time
tflops_per_gpu: train_throughput_per_npu
""")
SAMPLES_PER_S = table("samples_per_s: currsamplespersec, samplespersec, runningavgsamplespersec")

FORMATS = (
    Format("nemo", ("Training epoch", "iteration"), r"Training epoch" + EPOCH + ", iteration" + STEP_OF,
           MEGATRON_NAMES, PIPES),
    Format("megatron-deepspeed", ("iteration", "consumed tokens:"), ITERATION, MEGATRON_NAMES, PIPES,
           unless=NOT_TRAINING),
    Format("megatron-deepspeed", ("iteration=", "|", "per_iteration_ms="), ITERATION, MEGATRON_NAMES, PIPES,
           unless=NOT_TRAINING),
    Format("megatron-lm", ("iteration", "|", "per iteration"), ITERATION, MEGATRON_NAMES, PIPES, unless=NOT_TRAINING),
    Format("nanotron", ("iteration:", "lm_loss:"), ITERATION, MEGATRON_NAMES, PIPES, unless=NOT_TRAINING),
    Format("megatron-lm", ("iteration", "loss:"), ITERATION, MEGATRON_NAMES, PIPES, unless=NOT_TRAINING,
           check=with_loss),
    Format("deepspeed", ("step=", "skipped="),
           r"(?<!\w)step=" + STEP + r", skipped=\d+, lr=\[(?:np\.float\d\d\()?" + LR),
    Format("deepspeed", ("SamplesPerSec=",),
           r"(?:(?:global_step=|(?<![\d/])\d{1,9}/\d{1,12}/)" + STEP + r"|\d/\d{1,12}), (?:RunningAvg)?SamplesPerSec=",
           SAMPLES_PER_S),
    Format("deepspeed", ("steps:", "samples/sec:", "loss:"),
           r"(?<!\w)steps:" + STEP + " loss: {0,4}" + LOSS + r" iter time \(s\): {0,4}" + number("ms_per_iter")
           + " samples/sec: {0,4}" + number("samples_per_s"), units={"ms_per_iter": "s"}),
    Format("deepspeed-chat", ("Step:", "loss = "),
           r"Epoch:" + EPOCH + ", Step:" + STEP + r", Rank: \d+, loss = " + LOSS),
    Format("deepspeed-chat", ("Step:", "Actor Loss:"),
           r"Epoch:" + EPOCH + r" \| Step:" + STEP + r" \|[^:]{0,20}: \d+ \| Actor Loss: {0,4}" + LOSS),
    Format("torchtitan", ("step:", "loss:", "memory:"),
           r"(?<!validate )(?<![\w/])step:" + STEP + r" {1,8}loss: {0,12}" + LOSS, TITAN_NAMES),
    Format("nanogpt", ("iter ", "loss ", "time "), r"(?<!\w)iter" + STEP + ": loss " + LOSS + ", ",
           table("ms_per_iter in_ms: time\nmfu: mfu"), BLANKS),
    Format("nanogpt", ("Iter ", "loss ", "time "), r"(?<!\w)Iter" + STEP + ": loss " + LOSS + ", ",
           table("ms_per_iter in_ms: time\nmfu: mfu"), BLANKS),
    Format("llama2.c", ("| loss ", "| lr ", "ms | mfu "),
           r"(?<![\w.])" + STEP + r" \| loss " + LOSS + r" \| lr " + LR + r" \| (?P<ms_per_iter>%s ?ms) \|" % NUM,
           more=(r"mfu (?P<mfu>%s%%)" % NUM,)),
    Format("llm.c", ("step ", "| loss ", " tok/s"), r"(?<!\w)step" + STEP_OF + r" \| (?:train )?loss " + LOSS,
           more=(r"\| norm " + NORM, r"\| lr " + LR, r"\| \(?(?P<ms_per_iter>%s ms)" % NUM, r"\| (?P<mfu>%s%%)" % NUM,
                 r"\| (?P<tokens_per_s>%s) tok/s" % NUM)),
    Format("build-nanogpt", ("| norm: ", "| lr ", "step "),
           r"(?<!\w)step" + STEP + r" \| loss: {0,4}" + LOSS + r" \| lr {0,4}" + LR + r" \| norm: {0,4}" + NORM,
           more=(r"\| dt: {0,4}(?P<ms_per_iter>%s ?ms)" % NUM, r"\| tok/sec: {0,4}(?P<tokens_per_s>%s)" % NUM)),
    Format("litgpt", ("iter ", " step ", "loss train:"),
           r"Epoch" + EPOCH + r" \| iter \d+ step" + STEP + r" \| loss train: {0,4}" + LOSS,
           more=(r"iter time: {0,4}(?P<ms_per_iter>%s ms)" % NUM, r"remaining time: {0,4}(?P<eta_s>\d[^|]{3,40})")),
    Format("litgpt", ("iter ", " step ", "iter time:"),
           r"(?<!\w)iter \d+:? step" + STEP + r": loss(?: train:)? {0,4}" + LOSS + r",",
           more=(r"iter time: {0,4}(?P<ms_per_iter>%s ?ms)" % NUM, r"remaining time: {0,4}(?P<eta_s>\d[^|]{3,40})")),
    Format("maxtext", ("completed step:", "loss:"), r"(?<!\w)completed step:" + STEP + r",",
           table("loss: loss, lm_loss\nms_per_iter s: seconds\ntflops_per_gpu: tflop/s/device, tflop/s\n"
                 "tokens_per_s_per_gpu: tokens/s/device\nlr: lr, learning_rate\ngrad_norm: grad_norm")),
    Format("xtuner", ("Step ", "data_time:", "loss:"),
           r"(?:Epoch" + EPOCH + r" )?(?<!\w)Step" + STEP_OF + r" {1,4}data_time:", XTUNER_NAMES),
    Format("nemo", ("| epoch ", "| loss ", "| tps "),
           r"(?:^|[|:>\]]) {0,2}step" + STEP + r" \| epoch" + EPOCH + r" \| loss {1,4}" + LOSS,
           table("lr: lr\ngrad_norm: grad_norm"), BLANKS, unless=NOT_TRAINING,
           more=(r"\| tps (?P<tokens_per_s>%s)(?:\((?P<tokens_per_s_per_gpu>%s)/gpu\))?" % (NUM, NUM),)),
    Format("verl", ("step:", " - ", "/"), r"(?:^|[\s)\]:>])step:" + STEP + r" - ", VERL_NAMES, check=with_loss),
    Format("openrlhf", ("lobal step ", "{'"), r"Global step" + STEP + r": \{",
           table("loss: policy_loss, loss, gpt_loss\nlr: actor_lr, lr\nreward: reward\ngrad_norm: actor_grad_norm"),
           check=with_loss),
    Format("paddlenlp", ("global_step:", "learning_rate:", "loss:"),
           r"(?<!\w)loss: {0,4}" + LOSS + r", learning_rate: {0,4}" + LR + r", global_step:" + STEP
           + r"(?:/" + TOTAL + ")?", PADDLE_NAMES),
    Format("paddle", ("global step ", "loss:"),
           r"(?<!\w)global step" + STEP + r"(?: {0,2}/" + TOTAL + r")?, epoch:" + EPOCH,
           PADDLE_NAMES, more=PADDLE_RATES, units=PADDLE_UNITS, check=with_loss),
    Format("paddle", ("epoch: [", "global_step:", "loss:"),
           r"epoch: \[" + EPOCH + "/" + EPOCHS + r"\], (?:global_step|iter):" + STEP, PADDLE_NAMES, more=PADDLE_RATES,
           units=PADDLE_UNITS, check=with_loss),
    Format("paddle", ("[Train]", "[Iter:", "loss:"),
           r"\[Train\]\[Epoch" + EPOCH + "/" + EPOCHS + r"\]\[Iter:" + STEP_OF + r"\]", PADDLE_NAMES,
           more=(*PADDLE_RATES, r"(?<!\w)lr(?:\(\w{1,40}\))?: {0,2}" + LR), units=PADDLE_UNITS, check=with_loss),
    Format("paddle", ("[TRAIN]", "iter:", "loss:"),
           r"\[TRAIN\] epoch:" + EPOCH + r"(?:/" + EPOCHS + ")?, iter:" + STEP_OF,
           PADDLE_NAMES, more=PADDLE_RATES, units=PADDLE_UNITS),
    Format("paddle", ("Epoch: [", "batch_cost:", "loss:"), r"Epoch: \[" + EPOCH + r"\] \[" + STEP_OF + r"\]",
           PADDLE_NAMES, more=PADDLE_RATES, units=PADDLE_UNITS),
    Format("paddle", ("[train]", "batch:", "loss:"),
           r"\[train\].{0,60}epoch:" + EPOCH + r",.{0,60}(?<!\w)batch:" + STEP,
           PADDLE_NAMES, more=(*PADDLE_RATES, r"learning rate: {0,2}" + LR), units=PADDLE_UNITS),
    Format("mindformers", ("Epoch:[", "step:[", "loss"),
           r"Epoch:\[" + EPOCH + " {0,4}/" + EPOCHS + r"\], step:\[" + STEP_OF + r"\]", MINDSPORE_NAMES),
    Format("mindformers", (" samples/s/p", "|"),
           r"%% \|[^|]{0,200}\| {0,4}(?P<samples_per_s_per_gpu>%s) samples/s/p {1,8}(?P<eta_s>\d[^}]{3,40})" % NUM),
    Format("mindspore", ("epoch:", "step:", "loss is"),
           r"epoch:" + EPOCH + r",? step:" + STEP + r",? loss is:? {0,4}" + LOSS),
    Format("fairseq", ("epoch ", " / ", "loss=", "num_updates="),
           r"epoch 0{0,6}(?P<epoch>\d{1,9}): {1,12}(?P<place>\d{1,15}) / (?P<places>\d{1,15}) loss=" + LOSS,
           table("step: num_updates\nlr: lr\ngrad_norm: gnorm\ntokens_per_s: wps"), unless=r"valid", check=updates),
    Format("fairseq", ("train_inner", '"num_updates":', '"loss":'), r'"num_updates": "?' + STEP,
           table("epoch: epoch\nloss: loss\nlr: lr\ngrad_norm: gnorm\ntokens_per_s: wps"), unless="valid"),
    Format("espnet", ("epoch:train:", "batch:", "loss="),
           r"(?<!\d)(?P<place>\d{1,9})epoch:train:\d{1,12}-(?P<last>\d{1,12})batch: ",
           table("loss: loss\nlr: lr_0, optim0_lr0\ngrad_norm: grad_norm\nms_per_iter s: train_time"), check=batches),
    Format("modded-nanogpt", ("step:", "train_time:", "step_avg:"),
           r"(?<!\w)step:" + STEP_OF + r" (?:train_loss:" + LOSS + r" )?train_time:\S{1,20} step_avg:"
           r"(?P<ms_per_iter>%sms)" % NUM),
    Format("lingua", ("step:", "loss:", "wps:", "lr:"), r"(?<!\w)step:" + STEP + r" ",
           table("loss: loss\ngrad_norm: grad\ntokens_per_s_per_gpu: wps\nms_per_iter s: iter\nlr: lr")),
    Format("internlm", ("tflops:", "step:", "tgs (", "loss:"), r"(?<!\w)step:" + STEP + r", loss: {0,4}" + LOSS,
           table("tflops_per_gpu: tflops\nlr: lr\ngrad_norm: grad_norm\ntokens: num_consumed_tokens"),
           more=(r"(?<!\w)tgs \([\w/]{1,30}\): {0,4}(?P<tokens_per_s_per_gpu>%s)" % NUM,)),
    Format("flax", ("Step... (", "Loss:"),
           r"Step\.\.\. \(" + STEP + r"(?: */ *" + TOTAL + r")? \| (?:Train(?:ing)? )?Loss: {0,4}"
           + LOSS, more=(r"Learning Rate: {0,4}" + LR, r"Gradient Norm: {0,4}" + NORM)),
    Format("gpt-2-simple", ("] loss=", " avg="), r"\[" + STEP + r" \| [\d.]{1,12}\] loss=" + LOSS + r" avg="),
    Format("levanter", ("Progress on:train", "it/"),
           r"Progress on:train " + STEP + r"it/(?P<total>\d{1,15})it rate:(?P<ms_per_iter>%s)it/s" % NUM,
           COMMON, more=(r"remaining:(?P<eta_s>[\d:]{4,12})", r"postfix:loss=" + LOSS), units={"ms_per_iter": "per_s"}),
)
