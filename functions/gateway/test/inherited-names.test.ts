// Names of models, credentials and VirtualKeys: these may be the same as inherited members of all objects.
import { describe, expect, test } from 'vitest';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { codeOf, stage } from '../../../test/gateway/stage.ts';
import { MESSAGES } from '../../../test/gateway/upstream.ts';
import { INHERITED_NAMES } from '../../../test/support/inherited-names.ts';

describe.each(INHERITED_NAMES)('the name %s', (name) => {
  test('is no model unless the instance has one', async () => {
    const { chat, get } = stage();
    expect(await codeOf(await chat({ model: name, messages: MESSAGES }))).toEqual([404, 'model_not_found']);
    expect((await get(`/models/${name}`)).status).toBe(404);
  });

  test('may be that of a model, of its provider and of a credential', async () => {
    const credentials = JSON.parse(
      `{"apiKey":{"secret":"s","secretKey":"k"},"${name}":{"secret":"s","secretKey":"other"}}`,
    );
    const models = [entry(name, { provider: name, apiBase: 'https://models.example/v1', credentials })];
    const keys = { [KEY]: keyRecord({ name, models: [name] }) };
    const { chat, fake } = stage({ snapshot: snapshotOf(models), keys });
    expect((await chat({ model: name, messages: MESSAGES, [`x-${name}`]: 1 })).status).toBe(200);
    expect(fake.requests[0]?.headers.authorization).toBe('Bearer value-of-s-k');
  });
});
