// An instance's spec compiled for its gateway: no Kubernetes types, no secret values (DESIGN 6).
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import type { ModelEntry } from '#crds/kinds/model-entry.ts';
import { parseDuration } from '../money/duration.ts';
import { modelEntryPrice } from '../money/price-list.ts';
import type { ModelEntryField } from '../ports/rates.ts';
import { modelOf } from './entry-model.ts';
import type { Snapshot, SnapshotEntry } from './snapshot.ts';

/** The maximum bytes of a snapshot that is published: a ConfigMap has at most 1 MiB. */
export const MAX_SNAPSHOT = 900 * 1024;

/**
 * Pure: the same spec gives the same snapshot, with its members in the same order (without undefined ones), whatever
 * its Secrets contain. So a lost Secret never changes a configuration that works; the gateway skips model entries
 * without credentials.
 */
export function compileSnapshot(
  instance: { readonly uid: string; readonly namespace: string; readonly name: string },
  spec: GatewayInstanceSpec,
): Snapshot {
  const { strategy, retries, timeouts, cooldown } = spec.routing;
  return {
    version: 1,
    instance: { uid: instance.uid, namespace: instance.namespace, name: instance.name },
    blockedMessage: spec.blockedMessage,
    // Absent if false, so that earlier snapshots stay the same.
    storeResponses: spec.storeResponses || undefined,
    routing: {
      strategy,
      retries,
      timeouts: {
        connect: millis(timeouts.connect),
        firstByte: millis(timeouts.firstByte),
        idle: millis(timeouts.idle),
        total: millis(timeouts.total),
      },
      cooldown: {
        failures: cooldown.failures,
        within: millis(cooldown.within),
        duration: millis(cooldown.duration),
      },
    },
    models: spec.models.map(compileModelEntry),
  };
}

function compileModelEntry(entry: ModelEntry): SnapshotEntry {
  const { modelName, identifier, requiresAuth, modelCredentials, gatewayParams } = entry;
  const { apiBase, rpm, tpm, timeout, maxOutputTokens, toolCosts, weight = 1, priority = 0 } = gatewayParams;
  const limits: Readonly<Record<ModelEntryField, number | undefined>> = { rpm, tpm };
  const credentials = requiresAuth && modelCredentials ? Object.entries(modelCredentials.keys).sort(byName) : [];
  return {
    modelName,
    identifier,
    ...modelOf(gatewayParams),
    apiBase,
    credentials: Object.fromEntries(
      credentials.map(([name, secretKey]) => [name, { secret: modelCredentials?.nameRef ?? '', secretKey }]),
    ),
    requiresAuth,
    ...modelEntryPrice(gatewayParams),
    toolCosts,
    weight,
    priority,
    ...limits,
    timeout: timeout === undefined ? undefined : millis(timeout),
    maxOutputTokens,
  };
}

const byName = ([a]: [string, string], [b]: [string, string]) => (a < b ? -1 : 1);

/** Milliseconds of a duration. Specs are validated before this: a text that is no duration is a bug. */
function millis(duration: string): number {
  const parsed = parseDuration(duration);
  if (parsed === undefined) throw new Error(`not a duration: ${JSON.stringify(duration)}`);
  return parsed;
}
