// How does a key get another value without a moment in which the published one does not work?
// First the row, then the Secret: a value that is read anywhere works already. Of two runs one writes the Secret; the other
// takes its value back. A run that dies between the two leaves a hash whose value nobody ever had.
import { toKeyValue } from '#core/key-value.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { readSecret } from '../observe/key-secrets.ts';
import { toSecretView } from '../observe/secrets.ts';
import { present } from '../plan/key-secret.ts';
import { pathOf } from '../world.ts';
import { done, failed, type Performer } from './hands.ts';
import { refused } from './objects.ts';
import { KEY_BYTES, toPatch } from './secrets.ts';

export const rotateSecret: Performer<'RotateSecret'> = async (action, hands) => {
  const { deps, world, links } = hands;
  const { namespace, name, instance, claim, scopeId, shape, asked } = action;
  const key = pathOf({ namespace, name });
  const link = links.get(instance);
  const secret = present(world.keys.get(key)?.secret);
  if (link === undefined || secret === undefined) return failed('its Secret or its database cannot be reached');
  const value = toKeyValue(deps.random(KEY_BYTES));
  const hash = deps.hash(value);
  const added = await link.registry.addValue(scopeId, hash, asked);
  if (added === undefined) return failed('another key has the value already');
  const written = await deps.cluster.patch(RESOURCES.secrets, namespace, shape.name, toPatch(secret, shape, value));
  const facts = (view: ReturnType<typeof toSecretView>, values: typeof added) =>
    [
      { fact: 'values', instance, key: claim, values },
      { fact: 'secret', key, which: 'secret', view },
    ] as const;
  if (written.ok) return done(...facts(toSecretView(written.object, deps.hash), added));
  // A refusal may be about our own write, repeated by the network.
  const found = await readSecret(deps, namespace, shape.name);
  if (found.state === 'present' && found.hash === hash) return done(...facts(found, added));
  const values = await link.registry.retireValues(scopeId, [hash]);
  const outcome = await refused(written, async () => ({ fact: 'secret', key, which: 'secret', view: found }));
  const learned = 'facts' in outcome ? (outcome.facts ?? []) : [];
  return outcome.ended === 'moot'
    ? outcome
    : { ...outcome, facts: [{ fact: 'values', instance, key: claim, values }, ...learned] };
};
