"""The formats of vision and general frameworks, and of well-known example scripts."""
from __future__ import annotations

from trainwatch_launcher.progress.names import COMMON, table
from trainwatch_launcher.progress.pairs import BLANKS
from trainwatch_launcher.progress.table import (
    EPOCH,
    EPOCHS,
    LOSS,
    LR,
    NUM,
    STEP,
    STEP_OF,
    TOTAL,
    Format,
    number,
    with_loss,
)

MM_NAMES = table("""
loss: loss
lr: lr, base_lr
grad_norm: grad_norm
eta_s: eta
ms_per_iter s: time
""")
METRIC_LOGGER = table("""
loss: loss, total_loss
lr: lr
grad_norm: grad_norm
samples_per_s: img/s
ms_per_iter s: time
eta_s: eta
""")

FORMATS = (
    Format("mmengine", ("Iter(train)", "loss"), r"Iter\(train\) {1,4}\[" + STEP_OF + r"\]", MM_NAMES),
    Format("mmengine", ("Epoch(train)", "loss"),
           r"Epoch\(train\) {1,4}\[" + EPOCH + r"\]\[" + STEP_OF + r"\]", MM_NAMES),
    Format("mmcv", ("Epoch [", "lr:", "loss"), r"(?<!\w)Epoch \[" + EPOCH + r"\]\[" + STEP_OF + r"\][ \t,]{1,8}lr: ",
           MM_NAMES),
    Format("mmcv", ("Iter [", "lr:", "loss"), r"(?<!\w)Iter \[" + STEP_OF + r"\][ \t,]{1,8}lr: ", MM_NAMES),
    Format("detectron2", ("iter:", "total_loss:", "lr:"),
           r"(?<!\w)iter:" + STEP + r"(?:/" + TOTAL + r")?[ \t,]{1,4}total_loss:",
           table("loss: total_loss\nlr: lr\nms_per_iter s: time\neta_s: eta")),
    Format("maskrcnn-benchmark", ("iter:", "loss:", "max mem:", "lr:"),
           r"eta: {0,4}(?P<eta_s>[\w:, ]{4,40}?) {1,4}iter:" + STEP + " {1,4}loss: {0,4}" + LOSS + r" \(",
           table("lr: lr\nms_per_iter s: time")),
    Format("timm", ("Train:", "Loss:", "LR:", "/s"), r"Train:" + EPOCH + r" \[" + STEP_OF + r" {0,4}\(",
           table("loss: loss\nlr: lr"),
           more=(r"Time: {0,4}(?P<ms_per_iter>%ss), {0,12}(?P<samples_per_s>%s)/s" % (NUM, NUM),)),
    Format("openpcdet", ("Train:", "Loss:", "LR:", "Batch time:"),
           r"Train:" + EPOCH + r"/ {0,6}\d{1,9} \([^()]{1,8}\) \[" + STEP_OF + r" \(",
           table("loss: loss\nlr: lr"), more=(r"Batch time: {0,4}(?P<ms_per_iter>%s)" % NUM,),
           units={"ms_per_iter": "s"}),
    Format("torchvision", ("Epoch: [", "eta:", "loss:"), r"Epoch: \[" + EPOCH + r"\] {1,4}\[" + STEP_OF + r"\]",
           METRIC_LOGGER),
    Format("torchvision", ("max mem:", "eta:", "loss:", "time:"),
           r"(?i:train)\w*:?(?: data)?(?: {1,2}epoch: \[" + EPOCH + r"\])? {1,4}\[" + STEP_OF + r"\] {1,4}eta: ",
           METRIC_LOGGER, unless=r"\beval|\btest\b|\bval"),
    Format("swin", ("Train: [", "eta ", "loss "),
           r"Train: \[" + EPOCH + "/" + EPOCHS + r"\]\[" + STEP_OF + r"\][ \t]{1,4}eta ",
           table("loss: loss\nlr: lr\ngrad_norm: grad_norm\nms_per_iter s: time\neta_s: eta"), BLANKS),
    Format("pytracking", ("[train: ", "Loss/total:"), r"\[train:" + EPOCH + "," + STEP_OF + r"\]",
           table("loss: loss/total\ngrad_norm: grad_norm\nlr: lr")),
    Format("clu", ("_writer", ".py:", "loss="), r"(?:metric|logging)_writers?\.py:\d{1,6}\] \[" + STEP + r"\] ",
           table("loss: loss, train_loss, train/loss\nlr: learning_rate, lr\n"
                 "ms_per_iter per_s: steps_per_second, steps_per_sec"), unless=r"\beval|\bval|\btest", check=with_loss),
    Format("wenet", ("TRAIN ", "Batch ", "loss "),
           r"TRAIN (?:\| steps \d{1,12} \| )?Batch" + EPOCH + "/" + STEP + r" loss " + LOSS,
           table("lr: lr"), BLANKS),
    Format("pytorch-imagenet", ("Epoch: [", "Time", "Loss"),
           r"Epoch: \[" + EPOCH + r"\]\[" + STEP_OF + r"\][ \t]{1,4}Time {0,6}" + number("ms_per_iter"),
           more=(r"\bLoss {0,6}" + LOSS,), units={"ms_per_iter": "s"}),
    Format("open-clip", ("Train Epoch:", "Batch (t):", "Loss"),
           r"Train Epoch:" + EPOCH + r" \[ {0,12}\d{1,15}/\d{1,15} \(",
           more=(r"Batch \(t\): {0,4}(?P<ms_per_iter>%s), {0,8}(?P<samples_per_s>%s)/s" % (NUM, NUM),
                 r"/s, {0,8}(?P<samples_per_s_per_gpu>%s)/s/gpu" % NUM, r"LR: {0,4}" + LR, r" Loss: {0,4}" + LOSS),
           units={"ms_per_iter": "s"}),
    Format("pytorch-mnist", ("Train Epoch:", "Loss:"),
           r"Train Epoch:" + EPOCH + r" \[" + STEP_OF + r" \([\d.% ]{1,8}\)\][ \t,]{1,4}Loss: {0,4}" + LOSS),
    Format("pytorch-lm", ("| epoch", "batches |", "loss"),
           r"\| epoch" + EPOCH + r" \|" + STEP_OF + r" batches \|", COMMON, BLANKS),
    Format("transformer-xl", ("| epoch", " step ", "batches |", "loss"),
           r"\| epoch" + EPOCH + r" step" + STEP + r" \| {1,12}\d{1,15} batches \|", COMMON, BLANKS),
    Format("x-transformer", ("][", "batches |", "loss"),
           r"\[ {0,9}\d{1,9}/ {0,9}\d{1,9}\]\[" + STEP_OF + r"\] \| {0,9}\d{1,9}/ {0,9}\d{1,9} batches \|",
           COMMON, BLANKS),
    Format("pytorch-tutorial", ("[", "] loss: "),
           r"(?:^|[\s:>])\[" + EPOCH + r", {1,8}(?P<step>\d{1,15})\] loss: " + LOSS + "$"),
    Format("dppo", ("train loss", "| t:"), r"(?<![\w.:-])" + STEP + r": train loss {1,8}" + LOSS + r" \| t:"),
    Format("tensorflow", ("loss = ", "step = "),
           r"(?<!\w)loss = " + LOSS + r", (?:global_)?step = " + STEP + r"(?=$| \(|,)"),
    Format("flair", ("epoch ", " - iter ", " - loss "),
           r"(?<!\w)epoch" + EPOCH + r" - iter" + STEP_OF + r" - loss " + LOSS,
           COMMON),
    Format("lightning", ("Epoch ", "it/s", "\u2022"),
           r"Epoch" + EPOCH + r"(?:/" + EPOCHS + r")? {1,4}[^\w\s]{1,200}[ \u2501\u257a\u2578]{0,200}" + STEP_OF
           + r" {1,4}\d[\d:]{3,12} \u2022 (?P<eta_s>\d[\d:]{3,12}) (?P<ms_per_iter>%s)it/s" % NUM,
           COMMON, units={"ms_per_iter": "per_s"}),
)
