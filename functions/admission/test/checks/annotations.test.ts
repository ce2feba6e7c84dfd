// Annotations that are refused.
import { beforeEach, describe, expect, test } from 'vitest';
import { createWorld, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => review('GatewayInstance', change, metadata, more);

  test('with invalid values of annotations is refused', async () => {
    const asked = async (name: string, text: string) =>
      (await instance({}, { annotations: { [`instance.gateway-operator.dev/${name}`]: text } })).refused;
    for (const [name, text] of [
      ['adopt-ledger', '7d2c1c5e-5c5b-4b4e-8a53-0f1f5a7e7b11'],
      ['deletion-share', '50%'],
    ] as const)
      expect(await asked(name, text)).toEqual([]);
    expect(await asked('adopt-ledger', 'the old one')).toEqual([
      expect.stringContaining('must be the uid of a deleted instance'),
    ]);
    expect(await asked('deletion-share', '101%')).toEqual([expect.stringContaining('must be a whole per cent')]);
  });
});

describe('a key', () => {
  test('with an empty rotation annotation is refused', async () => {
    const name = 'auth.gateway-operator.dev/rotate';
    const asked = async (text: string) => (await review('VirtualKey', {}, { annotations: { [name]: text } })).refused;
    expect(await asked('2026-11-21')).toEqual([]);
    expect(await asked(' ')).toEqual([
      `metadata.annotations["${name}"]: Invalid value: " ": must be 1 to 256 visible characters; write a text that it did not have before, e.g. the date`,
    ]);
    expect(await asked('x'.repeat(257))).toHaveLength(1);
  });
});
