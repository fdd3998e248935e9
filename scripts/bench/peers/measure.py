"""What follows from the arrival times of tokens; the same arithmetic as `tgi bench`."""


def decode_rate(times):
    """Tokens per second between the moment when every stream has its first token and the moment when the first one ends:
    the time in which all of them decode and nothing else runs. `times`: for each stream, when its tokens came."""
    begin = max(stream[0] for stream in times)
    end = min(stream[-1] for stream in times)
    count = sum(begin < time <= end for stream in times for time in stream)
    if count < 2 * len(times):
        raise RuntimeError("the first answer ended before the last prompt was done")
    return count / (end - begin)
