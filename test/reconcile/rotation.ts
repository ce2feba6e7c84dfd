// How do tests watch the key `chat` rotate?
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import type { Bed } from './bed.ts';
import { createChat } from './chat.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const ROTATE = 'auth.gateway-operator.dev/rotate';
export const HOURLY = { rotation: { every: '1h', overlap: '10m' } };

/** As `createChat`; a key that works rotates hourly unless its test says otherwise. */
export function createRotation(bed: () => Bed) {
  const { published, editKey, ...chat } = createChat(bed);
  const working = (spec: object = HOURLY) => chat.working(spec);
  const ask = (text: string | null) =>
    bed().edit(virtualKeys, 'chat', { metadata: { annotations: { [ROTATE]: text } } });
  const pass = async (millis: number) => {
    bed().clock.pass(millis);
    return bed().sweep();
  };
  const condition = async (wanted: string) => {
    const { conditions } = await bed().status(virtualKeys, 'chat');
    return conditions?.find(({ type }) => type === wanted);
  };
  const rotation = () => condition('Rotation');
  const messages = () =>
    bed()
      .cluster.objects(RESOURCES.events)
      .map(({ reason, message }) => `${reason}: ${message}`);
  return { published, working, editKey, ask, pass, condition, rotation, messages };
}
