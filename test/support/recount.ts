// A recount as one step, as the write of a policy does it (scope-writes.ts).
import { countEdges, lockForRecount, writeRecounts } from '#adapters/postgres/recount.ts';
import type { Query } from '#adapters/postgres/session.ts';
import type { Recount } from '#core/ports/registry.ts';

export async function recount(query: Query, instanceUid: string, recounts: ReadonlyArray<Recount>): Promise<void> {
  const edges = await countEdges(query, recounts);
  await lockForRecount(query, instanceUid);
  await writeRecounts(query, recounts, edges);
}
