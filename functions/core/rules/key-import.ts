// May a key begin with the value that a Secret brings along for it (docs/keys.md)?
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import type { Finding } from '../finding.ts';

const SHORTEST = 24;
const LONGEST = 512;

/** A Secret whose annotation offers its value to the key. */
export interface Offer {
  readonly secret: string;
  readonly labelled: boolean;
  /** Of its entry `key`; undefined where that is absent. */
  readonly value: string | undefined;
}

/** What to mend in the Secret, which is a person's: never to delete it. Of the value nothing is told but which bound it breaks. */
export function keyImport(offer: Offer, key: string, template: string | undefined): Finding | undefined {
  const wrong = offer.labelled ? wrongWith(offer.value) : `lacks the label ${OWNED_LABEL}: "${OWNED}"; add it`;
  if (wrong === undefined) return undefined;
  return {
    rule: 'SecretConflict',
    path: template === undefined ? 'metadata.name' : 'spec.secretTemplate.name',
    value: template ?? key,
    message: `Secret ${JSON.stringify(offer.secret)} is to be imported and ${wrong}`,
    effect: 'refuse',
  };
}

/** As long as ours at least half are: what can be guessed is no key. */
function wrongWith(value: string | undefined): string | undefined {
  const bounds = `${SHORTEST} to ${LONGEST} characters without blanks`;
  if (value === undefined) return `has no entry "key"; put the value there, ${bounds}`;
  const fix = `a value has ${bounds}; correct the value in that Secret`;
  if (/\s/.test(value)) return `the value in its entry "key" has blanks or line ends in it; ${fix}`;
  if (value.length < SHORTEST) return `the value in its entry "key" is too short; ${fix}`;
  return value.length > LONGEST ? `the value in its entry "key" is too long; ${fix}` : undefined;
}
