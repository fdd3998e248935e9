"""What follows from the arrival times of tokens; the same arithmetic as `tgi bench`."""


def check_all_came(times, num_new_tokens):
    for stream in times:
        if len(stream) != num_new_tokens:
            raise RuntimeError(f"{len(stream)} tokens came, {num_new_tokens} were asked for")


class TimedRunner:
    """The measurements of a Runner whose run(prompts, num_new_tokens) gives when the tokens of every prompt came, and when
    all were asked for."""

    def prefill(self, prompt):
        times, begin = self.run([prompt], 1)
        return times[0][0] - begin

    def decode(self, prompts, num_new_tokens):
        return decode_rate(self.run(prompts, num_new_tokens)[0])


def decode_rate(times):
    """Tokens per second between the moment when every stream has its first token and the moment when the first one ends:
    the time in which all of them decode and nothing else runs. `times`: for each stream, when its tokens came."""
    begin = max(stream[0] for stream in times)
    end = min(stream[-1] for stream in times)
    count = sum(begin < time <= end for stream in times for time in stream)
    if count < 2 * len(times):
        raise RuntimeError("the first answer ended before the last prompt was done")
    return count / (end - begin)
