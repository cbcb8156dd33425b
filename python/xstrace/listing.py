"""A kernel's assembly, whichever compiler made it: what stalls.py looks at."""

from __future__ import annotations


class Listing:
    """path: where it comes from; instructions, in their order; blocks: (name, place of its first instruction, names of those before it).

    An instruction has address (bytes from the kernel's begin), text, line and file (of the source, or None); waits: what it needs before it
    can go on (a set of names); defines: what of that kind it makes; sets: what of these comes at no fixed time; slow: which sort of those
    it is, or None.
    """

    def __init__(self, path, instructions, blocks):
        self.path, self.instructions, self.blocks = path, instructions, blocks
        self.places = {one.address: place for place, one in enumerate(instructions)}

    def _spans(self):
        """first, last + 1 and predecessors of each block, by name; what comes before the first one is a block, too."""
        blocks = self.blocks if self.blocks and self.blocks[0][1] == 0 else [("", 0, []), *self.blocks]
        ends = [start for _, start, _ in blocks[1:]] + [len(self.instructions)]
        return {name: (start, end, before) for (name, start, before), end in zip(blocks, ends, strict=True)}

    def causes(self, place, slow=None):
        """What the instruction at this place waits for: those (of that sort) that set what it needs, the nearest first (a list)."""
        spans, missing, found = self._spans(), set(self.instructions[place].waits), []
        home = next((name for name, (start, end, _) in spans.items() if start <= place < end), None)
        if home is None:
            return found
        ways, seen = [(home, place)], set()
        while ways and missing:
            name, end = ways.pop(0)
            start, _, before = spans[name]
            for at in range(end - 1, start - 1, -1):
                one = self.instructions[at]
                if one.sets & missing and slow in (None, one.slow):
                    found.append(one)
                missing -= one.defines
            for block in before:
                if block in spans and block not in seen:
                    seen.add(block)
                    ways.append((block, spans[block][1]))
        return found
