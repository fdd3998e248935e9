"""Hashes that stand for long results: FNV-1a, 64 bits, over bytes; ids are 32 bits, little-endian."""
import struct


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def packed(ids):
    return struct.pack(f"<{len(ids)}i", *ids)
