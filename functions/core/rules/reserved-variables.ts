// Environment variables of a gateway's container that a spec may not set: its addresses, and the paths of its mounts.

const OWN_VARIABLES = [
  'PORT',
  'METRICS_PORT',
  'HOST',
  'SNAPSHOT_FILE',
  'CREDENTIALS_DIR',
  'DATABASE_DIR',
  'STORE_DIR',
  'JOURNAL_DIR',
] as const;

export type OwnVariable = (typeof OWN_VARIABLES)[number];

export const isOwnVariable = (name: string): boolean => OWN_VARIABLES.some((own) => own === name);
