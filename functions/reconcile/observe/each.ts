// How are many things asked for at once, but not all at once?

/** Maps in order with at most `width` calls under way. Rejects with the first rejection. */
export async function each<T, R>(
  items: Iterable<T>,
  width: number,
  visit: (item: T) => Promise<R>,
): Promise<ReadonlyArray<R>> {
  const waiting = [...items].entries();
  const results: R[] = [];
  const worker = async () => {
    for (const [index, item] of waiting) results[index] = await visit(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}
