"""Kernels in Triton for exact noise: ChaCha20 words, and what floats can decide of them.

Number i of a launch has the 64-bit word (high, low): `high` is word j of ChaCha20 block b of stream 0 and `low` that
of stream 1, where i = (b // LANES * 16 + j) * LANES + b % LANES. `draw_short` looks at `high` alone, in float32;
`draw_long` at both, in float64. What they decide, they decide as `RoundedNoise` does; proof in gpu_noise.md.
"""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["LANES", "chacha_words", "draw_long", "draw_short", "largest_error"]

LANES = 256

if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _turned(x, bits: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        return (x << bits) | (x >> (32 - bits))

    @triton.jit  # type: ignore[untyped-decorator]
    def _quarter(a, b, c, d) -> Any:  # type: ignore[no-untyped-def]
        a = a + b
        d = _turned(d ^ a, 16)
        c = c + d
        b = _turned(b ^ c, 12)
        a = a + b
        d = _turned(d ^ a, 8)
        c = c + d
        b = _turned(b ^ c, 7)
        return a, b, c, d

    @triton.jit  # type: ignore[untyped-decorator]
    def _chacha(key, counter, stream) -> Any:  # type: ignore[no-untyped-def]
        """The 16 words of one block for each counter."""
        nothing = counter * 0
        k0 = tl.load(key + 0).to(tl.uint32, bitcast=True) + nothing
        k1 = tl.load(key + 1).to(tl.uint32, bitcast=True) + nothing
        k2 = tl.load(key + 2).to(tl.uint32, bitcast=True) + nothing
        k3 = tl.load(key + 3).to(tl.uint32, bitcast=True) + nothing
        k4 = tl.load(key + 4).to(tl.uint32, bitcast=True) + nothing
        k5 = tl.load(key + 5).to(tl.uint32, bitcast=True) + nothing
        k6 = tl.load(key + 6).to(tl.uint32, bitcast=True) + nothing
        k7 = tl.load(key + 7).to(tl.uint32, bitcast=True) + nothing
        c0 = nothing + 0x61707865
        c1 = nothing + 0x3320646E
        c2 = nothing + 0x79622D32
        c3 = nothing + 0x6B206574
        n0 = nothing
        n1 = nothing + stream
        n2 = nothing
        s0, s1, s2, s3 = c0, c1, c2, c3
        s4, s5, s6, s7 = k0, k1, k2, k3
        s8, s9, s10, s11 = k4, k5, k6, k7
        s12, s13, s14, s15 = counter, n0, n1, n2
        for _ in range(10):
            s0, s4, s8, s12 = _quarter(s0, s4, s8, s12)
            s1, s5, s9, s13 = _quarter(s1, s5, s9, s13)
            s2, s6, s10, s14 = _quarter(s2, s6, s10, s14)
            s3, s7, s11, s15 = _quarter(s3, s7, s11, s15)
            s0, s5, s10, s15 = _quarter(s0, s5, s10, s15)
            s1, s6, s11, s12 = _quarter(s1, s6, s11, s12)
            s2, s7, s8, s13 = _quarter(s2, s7, s8, s13)
            s3, s4, s9, s14 = _quarter(s3, s4, s9, s14)
        return (
            s0 + c0, s1 + c1, s2 + c2, s3 + c3, s4 + k0, s5 + k1, s6 + k2, s7 + k3,
            s8 + k4, s9 + k5, s10 + k6, s11 + k7, s12 + counter, s13 + n0, s14 + n1, s15 + n2,
        )  # fmt: skip

    @triton.jit  # type: ignore[untyped-decorator]
    def _short_magnitude(m) -> Any:  # type: ignore[no-untyped-def]
        """|Z| in float32 from the first 31 bits of the uniform."""
        x = m.to(tl.float32) * (2.0**-31) + 2.0**-32
        v = -tl.log(x)
        top = (
            (4.448229302830665e-04 * v + 5.378411582241148e-02) * v + 0.665330802903159
        ) * v + 1.8610475094629844
        top = (top * v + 1.2533079467735997) * v
        bottom = (
            (5.1898712013453896e-03 * v + 0.17235606810046902) * v + 1.0954100923914478
        ) * v + 1.984808123906588
        return top / (bottom * v + 1.0)

    @triton.jit  # type: ignore[untyped-decorator]
    def _long_magnitude(x) -> Any:  # type: ignore[no-untyped-def]
        """|Z| in float64, for x in [2^-50, 1]: the rational function of inverse_normal.py, and one for its tail."""
        v = -tl.log(x)
        p = v * 1.1054718781734161e-08 + 7.996661465979996e-06
        p = p * v + 0.0007596336965264353
        p = p * v + 0.022478673705059033
        p = p * v + 0.27389115390622354
        p = p * v + 1.5695773313679238
        p = p * v + 4.517161338421838
        p = p * v + 6.622415902906854
        p = p * v + 4.676346466219225
        p = p * v + 1.2533141373123036
        q = v * 3.0620520380512737e-07 + 6.618822505587751e-05
        q = q * v + 0.003399398015330084
        q = q * v + 0.0652520380209853
        q = q * v + 0.5678514363810367
        q = q * v + 2.479423493200755
        q = q * v + 5.7111448418000945
        q = q * v + 6.9710496766020205
        q = q * v + 4.231184646193057
        q = q * v + 1.0
        a = v * 4.771724191464283e-10 + 8.367701455481537e-07
        a = a * v + 0.00017284650087052425
        a = a * v + 0.009447043322025292
        a = a * v + 0.16573372997659222
        a = a * v + 0.9186956747819789
        a = a * v + 1.238515396638339
        b = v * 2.080207428850431e-08 + 1.0335638998997953e-05
        b = b * v + 0.001064413533230643
        b = b * v + 0.033528455327871125
        b = b * v + 0.35564760512897037
        b = b * v + 1.2022197670696826
        b = b * v + 1.0
        far = x < 3.814697265625e-06
        return v * tl.where(far, a, p) / tl.where(far, b, q)

    @triton.jit  # type: ignore[untyped-decorator]
    def _part(value, coarse) -> Any:  # type: ignore[no-untyped-def]
        return value & ((tl.full((), 1, tl.int64) << coarse) - 1)

    @triton.jit(do_not_specialize=["count", "coarse", "scale", "sure"])  # type: ignore[untyped-decorator]
    def draw_short(  # type: ignore[no-untyped-def]
        out, sums, key, doubtful, found, count, coarse, scale, sure,
        FLOOR: tl.constexpr, ADD: tl.constexpr, LANES: tl.constexpr,
    ) -> Any:  # fmt: skip
        """Decide by 31 bits of the uniform in float32; places of the others go to `doubtful`."""
        lane = tl.arange(0, LANES)
        tile = tl.program_id(0)
        words = _chacha(key, (tile * LANES + lane).to(tl.uint32), 0)
        start = tile.to(tl.int64) * (16 * LANES) + lane
        marks = tl.zeros((LANES,), tl.int32)
        for j in tl.static_range(16):
            high = words[j].to(tl.int32, bitcast=True)
            sign = high >> 31
            m = high ^ sign
            y = _short_magnitude(m) * scale
            place = start + j * LANES
            inside = place < count
            if ADD:
                value = tl.load(sums + place, mask=inside, other=0)
                part = _part(value, coarse).to(tl.float32) / (
                    tl.full((), 1, tl.int64) << coarse
                ).to(tl.float32)
                y = tl.where(sign < 0, -y, y) + part
                nearest = tl.floor(y + 0.5)
                drawn = ((value >> coarse) + nearest.to(tl.int64)) << coarse
            else:
                nearest = tl.floor(y + 0.5)
                drawn = (nearest.to(tl.int32) ^ sign) - sign
            doubt = ((tl.abs(y - nearest) > sure) | (m < FLOOR)) & inside
            marks |= doubt.to(tl.int32) << j
            tl.store(out + place, drawn, mask=inside & (doubt == 0))
        counts = tl.zeros((LANES,), tl.int32)
        for j in tl.static_range(16):
            counts += (marks >> j) & 1
        total = tl.sum(counts, 0)
        if total > 0:
            at = tl.atomic_add(found, total) + tl.cumsum(counts, 0) - counts
            for j in tl.static_range(16):
                mine = ((marks >> j) & 1) != 0
                tl.store(doubtful + at, start + j * LANES, mask=mine)
                at += mine.to(tl.int32)

    @triton.jit  # type: ignore[untyped-decorator]
    def _word_of(key, block, j, stream) -> Any:  # type: ignore[no-untyped-def]
        words = _chacha(key, block, stream)
        chosen = words[0]
        for other in tl.static_range(1, 16):
            chosen = tl.where(j == other, words[other], chosen)
        return chosen

    @triton.jit  # type: ignore[untyped-decorator]
    def _scale_of(key) -> Any:  # type: ignore[no-untyped-def]
        """The scale in float64, whose bits follow the key: numbers that a kernel is called with are float32."""
        low = tl.load(key + 8).to(tl.int64) & 0xFFFFFFFF
        return ((tl.load(key + 9).to(tl.int64) << 32) | low).to(tl.float64, bitcast=True)

    @triton.jit(do_not_specialize=["count", "coarse", "slack"])  # type: ignore[untyped-decorator]
    def draw_long(  # type: ignore[no-untyped-def]
        out, sums, key, places, count, many, open_places, open_words, found, coarse, slack,
        ADD: tl.constexpr, ALL: tl.constexpr, LANES: tl.constexpr,
    ) -> Any:  # fmt: skip
        """Decide by 63 bits in float64; places and words of the others go to `open_places` and `open_words`.

        All `count` numbers, or those at the first `many` (on the device) of `places`.
        """
        limit = count if ALL else tl.load(many).to(tl.int64)
        first = tl.program_id(0).to(tl.int64) * LANES
        if first >= limit:
            return
        index = first + tl.arange(0, LANES)
        inside = index < limit
        place = index if ALL else tl.load(places + index, mask=inside, other=0)
        block = (place // (16 * LANES)) * LANES + place % LANES
        j = ((place // LANES) % 16).to(tl.int32)
        high = _word_of(key, block.to(tl.uint32), j, 0).to(tl.int32, bitcast=True)
        low = _word_of(key, block.to(tl.uint32), j, 1)
        sign = high >> 31
        m = ((high ^ sign).to(tl.int64) << 32) | (low ^ sign.to(tl.uint32, bitcast=True)).to(
            tl.int64
        )
        x = m.to(tl.float64) * 1.0842021724855044e-19
        far = tl.maximum(x, 8.881784197001252e-16)
        scale = _scale_of(key)
        y = _long_magnitude(far) * scale
        doubtful = scale * (2.2737367544323206e-13 + 1.37e-19 / far) + slack
        if ADD:
            value = tl.load(sums + place, mask=inside, other=0)
            part = _part(value, coarse).to(tl.float64) / (tl.full((), 1, tl.int64) << coarse).to(
                tl.float64
            )
            y = tl.where(sign < 0, -y, y) + part
            nearest = tl.floor(y + 0.5)
            drawn = ((value >> coarse) + nearest.to(tl.int64)) << coarse
        else:
            nearest = tl.floor(y + 0.5)
            drawn = (nearest.to(tl.int32) ^ sign) - sign
        unsure = ((tl.abs(y - nearest) > 0.5 - doubtful) | (x < far)) & inside
        tl.store(out + place, drawn, mask=inside & (unsure == 0))
        at = tl.atomic_add(found + tl.zeros((LANES,), tl.int64), 1, mask=unsure)
        tl.store(open_places + at, place, mask=unsure)
        tl.store(open_words + at, m ^ sign.to(tl.int64), mask=unsure)

    @triton.jit  # type: ignore[untyped-decorator]
    def chacha_words(out, key, stream, LANES: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        """The words themselves, in the order of numbers: for tests."""
        lane = tl.arange(0, LANES)
        tile = tl.program_id(0)
        words = _chacha(key, (tile * LANES + lane).to(tl.uint32), stream)
        for j in tl.static_range(16):
            tl.store(out + (tile * 16 + j) * LANES + lane, words[j].to(tl.int32, bitcast=True))

    @triton.jit  # type: ignore[untyped-decorator]
    def largest_error(out, first, LANES: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        """How far `_short_magnitude` is from the magnitude at both ends of its interval, at most over LANES inputs."""
        m = first + tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
        found = _short_magnitude(m.to(tl.int32)).to(tl.float64)
        low = _long_magnitude(m.to(tl.float64) * 4.656612873077393e-10)
        high = _long_magnitude((m + 1).to(tl.float64) * 4.656612873077393e-10)
        error = tl.maximum(tl.abs(found - low), tl.abs(found - high))
        tl.store(out + tl.program_id(0), tl.max(error, 0))
