// How do tests watch the key `chat` rotate?
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createChat } from './chat.ts';
import type { Harness } from './harness.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const ROTATE = 'auth.gateway-operator.dev/rotate';
export const HOURLY = { rotation: { every: '1h', overlap: '10m' } };

/** As `createChat`; a key that works rotates hourly unless its test says otherwise. */
export function createRotation(harness: () => Harness) {
  const { published, editKey, ...chat } = createChat(harness);
  const working = (spec: object = HOURLY) => chat.working(spec);
  const ask = (text: string | null) =>
    harness().edit(virtualKeys, 'chat', { metadata: { annotations: { [ROTATE]: text } } });
  const pass = async (millis: number) => {
    harness().clock.pass(millis);
    return harness().resync();
  };
  const condition = async (wanted: string) => {
    const { conditions } = await harness().status(virtualKeys, 'chat');
    return conditions?.find(({ type }) => type === wanted);
  };
  const rotation = () => condition('Rotation');
  const messages = () =>
    harness()
      .cluster.objects(RESOURCES.events)
      .map(({ reason, message }) => `${reason}: ${message}`);
  return { published, working, editKey, ask, pass, condition, rotation, messages };
}
