// Which annotations are refused or warned about?
import { beforeEach, describe, expect, test } from 'vitest';
import { APPLIED_ANNOTATION } from '#crds/group.ts';
import type { KindName } from '#crds/kinds.ts';
import { createWorld, type World } from '../../../test/admission/fixtures.ts';
import { createReviews } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { told } = createReviews(() => world);

test('an annotation of ours on a kind where it does nothing is let in with a warning that says where it belongs', async () => {
  const warned = async (kind: KindName, name: string) => {
    const { refused, warnings } = await told(kind, {}, { annotations: { [name]: '1' } });
    expect(refused).toEqual([]);
    return warnings;
  };
  const on = (name: string, kind: KindName, place: string) => [
    `metadata.annotations["${name}"]: does nothing on a ${kind}; remove it here, and write it on ${place}`,
  ];
  const rotate = 'auth.gateway-operator.dev/rotate';
  expect(await warned('VirtualKey', rotate)).toEqual([]);
  expect(await warned('User', rotate)).toEqual(on(rotate, 'User', 'a VirtualKey'));
  expect(await warned('Team', rotate)).toEqual(on(rotate, 'Team', 'a VirtualKey'));
});

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => told('GatewayInstance', change, metadata, more);

  test('whose annotations ask for what is not understood is refused', async () => {
    const asked = async (name: string, text: string) =>
      (await instance({}, { annotations: { [`instance.gateway-operator.dev/${name}`]: text } })).refused;
    for (const [name, text] of [
      ['adopt-ledger', '7d2c1c5e-5c5b-4b4e-8a53-0f1f5a7e7b11'],
      ['deletion-share', '50%'],
    ] as const)
      expect(await asked(name, text)).toEqual([]);
    expect(await asked('adopt-ledger', 'the old one')).toEqual([
      expect.stringContaining('is not the uid of an instance'),
    ]);
    expect(await asked('deletion-share', '101%')).toEqual([expect.stringContaining('is no share')]);
  });

  test('with an annotation of ours that nothing reads is let in with a warning that names the one that was meant', async () => {
    const annotations = {
      'instance.gateway-operator.dev/adopt-leger': '7d2c1c5e',
      'gateway-operator.dev/shared-credentials': 'allowed',
      'instance.gateway-operator.dev/rotate': '1',
      'instance.gateway-operator.dev/colour': 'red',
      'instance.gateway-operator.dev.example.com/adopt-leger': 'foreign',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'adopt-leger': 'foreign',
      [APPLIED_ANNOTATION]: 'abc',
    };
    const nothing = 'nothing reads an annotation of this name; ';
    expect(await instance({}, { annotations })).toEqual({
      refused: [],
      warnings: [
        `metadata.annotations["instance.gateway-operator.dev/adopt-leger"]: ${nothing}did you mean "instance.gateway-operator.dev/adopt-ledger"?`,
        `metadata.annotations["gateway-operator.dev/shared-credentials"]: ${nothing}did you mean "instance.gateway-operator.dev/shared-credentials"?`,
        `metadata.annotations["instance.gateway-operator.dev/rotate"]: ${nothing}did you mean "auth.gateway-operator.dev/rotate", on a VirtualKey?`,
        expect.stringContaining(`colour"]: ${nothing}remove it, or choose among instance.gateway-operator.dev/shared-`),
        expect.stringMatching(/^instance.*adopt-ledger$/), // a warning goes on in a second line
      ],
    });
  });
});

describe('a key', () => {
  test('whose annotation asks for a rotation in no words is refused', async () => {
    const name = 'auth.gateway-operator.dev/rotate';
    const asked = async (text: string) => (await told('VirtualKey', {}, { annotations: { [name]: text } })).refused;
    expect(await asked('2026-11-21')).toEqual([]);
    expect(await asked(' ')).toEqual([
      `metadata.annotations["${name}"]: " ": asks for no rotation; write 1 to 256 visible characters that it did not say before, e.g. the date: each new text is one rotation`,
    ]);
    expect(await asked('x'.repeat(257))).toHaveLength(1);
  });
});
