// How does a call of any size become statements that keep their limits?

/** Consecutive slices of at most `size`; none of nothing. */
export function inPortions<T>(all: ReadonlyArray<T>, size: number): ReadonlyArray<ReadonlyArray<T>> {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, place) =>
    all.slice(place * size, (place + 1) * size),
  );
}
