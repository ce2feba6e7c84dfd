// Resyncs repair a certificate after any damage, and after a run that died at any write.
import { expect, test } from 'vitest';
import { DAY, type CertificateHarness as Harness } from '../../../test/reconcile/certificates.ts';
import { expectGood, isWrite, resyncs, started } from '../../../test/reconcile/good-certificate.ts';
import { random } from '../../../test/support/random.ts';

/** Damages a valid certificate. */
const scenarios: ReadonlyArray<readonly [string, (harness: Harness) => Promise<void>]> = [
  ['nothing happened', async () => undefined],
  ['renewal is due', async (harness) => harness.clock.pass(245 * DAY)],
  ['renewal of the CA is due', async (harness) => harness.clock.pass(7 * 365 * DAY)],
  ['it expired, because no resync ran', async (harness) => harness.clock.pass(400 * DAY)],
  ['the CA expired too', async (harness) => harness.clock.pass(11 * 365 * DAY)],
  ['its Secret was deleted', async (harness) => harness.removeSecret()],
  ['its key was emptied', async (harness) => harness.editSecret({ data: { 'tls.key': null } })],
  ['its certificate was overwritten', async (harness) => harness.editSecret({ data: { 'tls.crt': btoa('oh') } })],
  [
    'its data is not base64',
    async (harness) => harness.editSecret({ data: { 'tls.crt': '%', 'previous-ca.crt': '%' } }),
  ],
  ['its CA was overwritten', async (harness) => harness.editSecret({ data: { 'ca.crt': btoa('oh') } })],
  [
    'the key of the CA was lost before a renewal',
    async (harness) => {
      await harness.editSecret({ data: { 'ca.key': null } });
      harness.clock.pass(245 * DAY);
    },
  ],
  [
    'its Secret was deleted twice',
    async (harness) => {
      await harness.removeSecret();
      await harness.resync();
      await harness.removeSecret();
    },
  ],
];

test.each(scenarios)('when %s, the next resyncs repair it', async (_, happens) => {
  const harness = await started();
  await happens(harness);
  await harness.resync();
  expect(harness.serving()).toBeDefined();
  await resyncs(harness);
  await expectGood(harness);
});

const deaths = ['the write fails', 'its answer is lost', 'it is refused'] as const;

test.each(scenarios.flatMap(([name, happens]) => deaths.map((death) => [name, death, happens] as const)))(
  'when %s and %s, at any write, the next resyncs repair it',
  async (_, death, happens) => {
    // The longest scenario has this many writes.
    for (let at = 1; at <= 8; at += 1) {
      const harness = await started();
      await happens(harness);
      let count = 0;
      harness.onCall = (call) => {
        if (!isWrite(call)) return undefined;
        count += 1;
        if (count !== at) return undefined;
        if (death === 'the write fails') throw new Error('the process died');
        return death === 'its answer is lost' ? 'lost' : 'forbidden';
      };
      await resyncs(harness);
      await expectGood(harness);
    }
  },
);

test.each(scenarios)(
  'when %s, concurrent runs, in any order of their steps, have the result of one run',
  async (_, happens) => {
    for (let seed = 1; seed <= 3; seed += 1) {
      const harness = await started();
      await happens(harness);
      const next = random(seed);
      harness.onCall = async () => {
        for (let turns = Math.floor(next() * 12); turns > 0; turns -= 1) await Promise.resolve();
        return undefined;
      };
      await resyncs(harness, () => Promise.all([harness.resync(), harness.resync(), harness.resync()]));
      expect(harness.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
      await expectGood(harness);
    }
  },
);
