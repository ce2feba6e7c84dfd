// A value that is made when it is first needed.

/** The answer of `load`, made once. A load that fails is not remembered: the next call tries again. */
export function createLazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    const current = loading ?? load();
    loading = current;
    current.catch(() => {
      if (loading === current) loading = undefined;
    });
    return current;
  };
}
