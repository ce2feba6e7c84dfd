// The archive that the environment of the reconciler names.
import { createAwsKeys } from '#adapters/archive/aws-keys.ts';
import { createBucket } from '#adapters/archive/bucket.ts';
import { createFolder } from '#adapters/archive/folder.ts';
import type { Archive } from '#core/ports/archive.ts';
import type { ReconcileEnvironment } from '../config/environments.ts';
import type { ArchiveAddress } from '../config/readers.ts';
import { createLedgerArchive, type LedgerArchive, type LedgerArchiveDependencies } from './ledger-archive.ts';

interface ArchiveDependencies extends Pick<LedgerArchiveDependencies, 'clock' | 'log' | 'metrics'> {
  /** Through the proxies of the environment. */
  readonly fetch: typeof globalThis.fetch;
}

/** Servers that speak S3 and have no regions take this one. */
const ANY_REGION = 'us-east-1';

/** Undefined: the environment names none. */
export function openLedgerArchive(
  environment: ReconcileEnvironment,
  deps: ArchiveDependencies,
): LedgerArchive | undefined {
  const { ARCHIVE_URL: address, RETAIN_DAYS: keptDays } = environment;
  return address && createLedgerArchive({ ...deps, archive: openArchive(address, environment, deps), keptDays });
}

function openArchive(
  address: ArchiveAddress,
  environment: ReconcileEnvironment,
  { fetch, clock: { now } }: ArchiveDependencies,
): Archive {
  if (address.type === 'folder') return createFolder(address.url);
  const { AWS_REGION: region = ANY_REGION, AWS_ENDPOINT_URL_S3: endpoint } = environment;
  const keys = createAwsKeys(environment, { region, fetch, now });
  return createBucket(address, { region, endpoint, keys, fetch, now });
}
