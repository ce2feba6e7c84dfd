// Models that a key may use, as OpenAI's list, with nothing about who serves them.
import { ok } from '#core/result.ts';
import { modelsOf } from './access.ts';
import type { Caller } from './authenticate.ts';
import type { GatewayDeps } from './deps.ts';

export function createListModels({ snapshots }: Pick<GatewayDeps, 'snapshots'>) {
  return async function listModels(caller: Caller) {
    const snapshot = snapshots.current();
    const names = snapshot === undefined ? [] : modelsOf(caller, snapshot);
    // Clients insist on a date; the instance keeps none per model.
    return ok({
      object: 'list',
      data: names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'gateway-operator' })),
    });
  };
}
