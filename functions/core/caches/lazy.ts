// A value that is loaded at its first use.

/** Returns the value of `load`, which is called once. After a failure, the next call tries again. */
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
