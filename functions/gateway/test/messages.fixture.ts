import { message } from '../../../test/gateway/anthropic.ts';
import { entry, KEY } from '../../../test/gateway/instance.ts';
import { type OneModel, stageOne } from '../../../test/gateway/stage.ts';
import { MESSAGES } from '../../../test/gateway/upstream.ts';

/** A small request. */
export const ASK = { model: 'claude', max_tokens: 100, messages: MESSAGES };

/** A gateway for Anthropic, called as its clients call it. A token costs 1,000 nano-dollars, one of output 2,000. */
export function open({ script = () => ({ body: message('hello') }), ...more }: OneModel = {}) {
  const world = stageOne(entry('claude', { provider: 'anthropic' }), { script, ...more });
  const ask = (body: unknown, headers: Record<string, string> = { 'x-api-key': KEY }, query = '') =>
    world.app.request(`/v1/messages${query}`, {
      method: 'POST',
      headers: { 'anthropic-version': '2023-06-01', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { ...world, ask };
}

/** Status and members of an error. */
export const errorOf = async (response: Response) => {
  const { type, error } = (await response.json()) as { type: string; error: { type: string; code?: string } };
  return [response.status, type, error.type, error.code];
};
