// A resync reads claims first and looks up their objects later. What another run does with a claim in between stays.
import { describe, expect, test } from 'vitest';
import { teams, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam } from '../../../test/reconcile/objects.ts';

let harness: Harness;

/** Runs a resync that does this before its call number `index` of the database; false: there is no such call. */
async function resyncWith(index: number, meanwhile: () => Promise<void>): Promise<boolean> {
  let calls = 0;
  harness.onDatabase = async () => {
    calls += 1;
    if (calls !== index) return;
    harness.onDatabase = () => undefined;
    await meanwhile();
  };
  await harness.resync();
  harness.onDatabase = () => undefined;
  return calls >= index;
}

const run = () => harness.trigger('VirtualKey', 'chat', 'default');

describe('a resync that reads claims, and looks up their objects later', () => {
  test('leaves a retained key with its adopter, whenever the adopter comes', async () => {
    for (let index = 1; ; index += 1) {
      harness = createHarness();
      await harness.apply(...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain' }, 'chat', 'default'));
      await harness.resync();
      await harness.spend('chat', '1.25');
      const value = (await harness.value('chat-key', 'default')) ?? '';
      await harness.remove(virtualKeys, 'chat', 'default');
      await harness.resync();
      const adopt = async () => {
        await harness.apply(makeKey({}, 'chat', 'default'));
        await run();
      };
      if (!(await resyncWith(index, adopt))) break;
      expect([index, await harness.works(value)]).toEqual([index, true]);
      await harness.resync();
      const { currentSpend } = await harness.status(virtualKeys, 'chat', 'default');
      expect([index, await harness.works(value), currentSpend]).toEqual([index, true, '1.25']);
    }
  });

  test('leaves a Team the claim that gets its new alias meanwhile', async () => {
    for (let index = 1; ; index += 1) {
      harness = createHarness();
      await harness.apply(...makeSecrets(), makeInstance(), makeTeam());
      await harness.resync();
      await harness.spend('research', '1.25');
      const rename = async () => {
        await harness.edit(teams, 'research', { spec: { teamAlias: 'Research' } });
        await harness.trigger('Team', 'research');
      };
      const isLast = !(await resyncWith(index, rename));
      if (isLast) break;
      await harness.resync();
      const { currentSpend } = await harness.status(teams, 'research');
      expect([index, await harness.aliases(), currentSpend]).toEqual([index, ['Research'], '1.25']);
    }
  });

  test('leaves a key that is created and retained meanwhile', async () => {
    for (let index = 1; ; index += 1) {
      harness = createHarness();
      await harness.apply(...makeSecrets(), makeInstance(), makeKey({}, 'other', 'default'));
      await harness.resync();
      let value = '';
      const retain = async () => {
        await harness.apply(makeKey({ deletionPolicy: 'Retain' }, 'chat', 'default'));
        await run();
        value = (await harness.value('chat-key', 'default')) ?? '';
        await harness.remove(virtualKeys, 'chat', 'default');
        await run();
      };
      if (!(await resyncWith(index, retain))) break;
      await harness.resync();
      expect([index, await harness.works(value)]).toEqual([index, true]);
    }
  });
});
