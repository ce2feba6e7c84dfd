// The certificate of the stack's own TLS servers, and the private CA that signed it.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServingCertificate } from '../../../../functions/core/ports/issuer.ts';
import { createIssuer } from '../../../adapters/certificates/issuer.ts';
import { writeWhole } from '../state/state.ts';

/** `cert` and `key` are valid for 127.0.0.1 and localhost. */
export type Certificates = ServingCertificate;

const DAY = 86_400_000;
const LIFETIME = 365 * DAY;
const RENEW_BEFORE = 30 * DAY;
const NAMES = ['127.0.0.1', 'localhost'];

const issuer = createIssuer();

/** The folder's certificates; issued again if there are none, they are damaged, or they end within a month. */
export async function openCertificates(folder: string, now: Date): Promise<Certificates> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'certificates.json');
  const kept = existsSync(file) ? read(file, now) : undefined;
  if (kept !== undefined) return kept;
  const validity = { from: now.getTime() - DAY, until: now.getTime() + LIFETIME };
  const authority = await issuer.issueAuthority({ name: 'Gateway Operator local stack', ...validity });
  const made = await issuer.issue({ authority, names: NAMES, ...validity });
  writeWhole(file, JSON.stringify(made, null, 2));
  return made;
}

function read(file: string, now: Date): Certificates | undefined {
  try {
    const { ca, cert, key } = JSON.parse(readFileSync(file, 'utf8')) as Certificates;
    const validity = issuer.inspect({ ca, cert, key }, NAMES);
    return validity !== undefined && validity.until - now.getTime() > RENEW_BEFORE ? { ca, cert, key } : undefined;
  } catch {
    return undefined;
  }
}
