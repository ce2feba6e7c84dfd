// Answers about a kind whose CRD may be gone: such a kind has no objects.
import { type Cluster, ClusterError, type Resource } from '#core/ports/cluster.ts';

/** `absent` where the API server does not serve the kind. A 404 for any other cause is thrown: it must not pass for an empty kind. */
export async function whereServed<T, const A>(
  cluster: Cluster,
  kind: Resource,
  ask: () => Promise<T>,
  absent: A,
): Promise<T | A> {
  try {
    return await ask();
  } catch (error) {
    const isNotFound = error instanceof ClusterError && error.status === 404;
    if (isNotFound && !(await cluster.serves(kind))) return absent;
    throw error;
  }
}
