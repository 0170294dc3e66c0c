"""What training programs call things: printed names, in lower case, for each key, the better ones first."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Tuple

    Names = Dict[str, Tuple[int, str, str]]


def table(*rows: str) -> Names:
    """Rows of `key unit: name, name, ...` (no unit: what the key says) as name to (place in the list, key, unit)."""
    found: Names = {}
    for row in "\n".join(rows).strip().splitlines():
        head, _, names = row.partition(":")
        key, _, unit = head.strip().partition(" ")
        for name in names.split(","):
            if name.strip():
                found.setdefault(name.strip(), (len(found), key, unit.strip()))
    return found


COMMON_ROWS = """
loss: loss, total_loss, train_loss, training_loss, train/loss, loss/train, lm_loss, train/total_loss, step_loss
loss: train_loss_step, loss_step, reduced_train_loss, train-loss, trainloss, train.loss, training/loss, loss_train
loss: train/ce_loss, avg_loss, avr_loss, mean_loss, average_loss, running_loss, loss_avg, tot_loss, 损失
loss: losses/total_loss, minibatch_loss, batch_loss
lr: lr, learning_rate, learning-rate, learningrate, train/lr, train/learning_rate, lr/train, current_lr, lr_rate
lr: cur_lr, base_lr, optim/lr, 学习率
grad_norm: grad_norm, gnorm, gradnorm, grad-norm, gradient_norm, global_grad_norm, global_norm, train/grad_norm
grad_norm: total_grad_norm, optim/total_grad_norm, grad.norm
ms_per_iter ms: ms/batch, ms/step, ms/iter, ms/it, step_time_ms, iter_time_ms, time_ms, time/iter_ms
ms_per_iter s: s/it, s/iter, s/step, s/batch, sec/step, sec/iter, sec/batch, seconds/step, sec_per_step, sec_per_iter
ms_per_iter s: seconds_per_step, step_time_s, avg_batch_cost, batch_cost
ms_per_iter own: dt, step_time, iter_time, batch_time, time_per_step, time_per_iter, time/step, time/iter, step-time
ms_per_iter own: elapsed_time_per_step
ms_per_iter in_ms: time
ms_per_iter per_s: it/s, iter/s, iters/s, its/s, step/s, steps/s, steps/sec, iter/sec, iters/sec, it/sec, steps_per_sec
ms_per_iter per_s: steps_per_second, train_steps_per_second, iterations/s, batches/s
tokens_per_s_per_gpu: tokens/s/gpu, tokens/sec/gpu, tok/s/gpu, tok/sec/gpu, tokens_per_sec_per_gpu, tokens/gpu/s
tokens_per_s_per_gpu: tokens_per_second_per_gpu, tokens_per_gpu_per_sec, tokens/s/device, tokens/sec/device, tgs
tokens_per_s_per_gpu: tokens_per_gpu_per_second, tok/gpu/s, tps/gpu, tokens/gpu/sec, tokens_per_second_per_device
tokens_per_s: tokens/s, tokens/sec, tok/s, tok/sec, tokens_per_sec, tokens_per_second, tokens_per_s, toks/s
tokens_per_s: tokens/second, tok_per_sec, tokens_sec, train_tokens_per_second
samples_per_s_per_gpu: samples/s/gpu, samples/sec/gpu, img/s/gpu, images/s/gpu, samples_per_sec_per_gpu
samples_per_s: samples/s, samples/sec, samples_per_sec, samples_per_second, img/s, img/sec, imgs/s, images/s, images/sec
samples_per_s: images_per_sec, images_per_second, examples/s, examples/sec, samples/second, ex/s, sample/s
tflops_per_gpu: tflops/gpu, tflops_per_gpu, tflop/s/gpu, tflops/s/gpu, tflop/s/device, tflops_per_device
mfu auto: mfu, mfu(%), bf16_mfu, train/mfu
eta_s: eta, remaining, remaining_time, time_left, eta_time
tokens: consumed_tokens, tokens_seen, num_input_tokens_seen, tokens_processed
samples: consumed_samples, samples_seen
reward: reward, mean_reward, reward_mean, avg_reward, reward/mean
"""
COMMON = table(COMMON_ROWS)

HUGGING_FACE = table("""
loss: loss, train/loss, loss/policy_avg
lr: learning_rate, lr, train/learning_rate, train/lr, train/lr-pg_0
grad_norm: grad_norm, train/grad_norm
epoch: epoch, train/epoch
ms_per_iter per_s: train_speed(iter/s)
ms_per_iter s: train_speed(s/it)
eta_s: remaining_time, eta
tokens_per_s: throughput, tokens_per_second, train_tokens_per_second
tokens_per_s_per_gpu: tokens_per_second_per_gpu, tokens/train_per_sec_per_gpu, tokens_per_sec_per_gpu, tgs
tflops_per_gpu: throughput(tflop/s/gpu)
tokens: num_input_tokens_seen, num_tokens, total_tokens, tokens/total
reward: reward, objective/scores, rewards/mean
step: step, global_step, current_steps, train/global_step, train/step, iter
total: total_steps, max_steps
mfu auto: mfu
""")
"""In the dictionaries that the Trainer and its relatives (TRL, LLaMA-Factory, axolotl, ms-swift) print."""
