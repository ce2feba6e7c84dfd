// What can be wrong with the environment of a function, and what is said of it?

type Environment = Readonly<Record<string, string>>;

/** The function, its environment, and a line for each thing that is wrong. */
export const WRONG_ENVIRONMENTS: ReadonlyArray<[string, Environment, ReadonlyArray<string>]> = [
  [
    'admission',
    { PORT: 'http', LOG_LEVEL: 'loud', TLS_CERT_FILE: '/tls.crt', PATH_SECRETS: 'short' },
    [
      'PORT="http": is not a port',
      'LOG_LEVEL="loud"',
      'PATH_SECRETS needs 16 to 128 letters',
      'KUBECONFIG is not set',
      'TLS_CERT_FILE="/tls.crt": is not a file that can be read',
      'TLS_KEY_FILE is not set',
    ],
  ],
  [
    'reconcile',
    { PORT: '65536', GATEWAY_PROCESSES: 'some', RECONCILE_TOKEN: 'short' },
    [
      'PORT="65536": is not a port',
      'GATEWAY_PROCESSES="some"',
      'RECONCILE_TOKEN needs 16 to 128 letters',
      'KUBECONFIG is not set',
    ],
  ],
  [
    'trigger',
    { RECONCILE_URL: 'reconcile' },
    ['RECONCILE_URL="reconcile": is not an http:// or https:// address', 'RECONCILE_TOKEN is not set'],
  ],
  [
    'gateway',
    {
      PORT: '-1',
      LOG_LEVEL: 'x',
      SNAPSHOT_FILE: '/nowhere/snapshot.json',
      DATABASE_DIR: '/nowhere/db',
      STORE_DIR: '/nowhere/store',
      JOURNAL_DIR: '/nowhere/journal',
    },
    [
      ...['PORT="-1": is not a port', 'LOG_LEVEL="x"'],
      'SNAPSHOT_FILE="/nowhere/snapshot.json"',
      'DATABASE_DIR="/nowhere/db"',
      'STORE_DIR="/nowhere/store": host is missing',
      'JOURNAL_DIR="/nowhere/journal"',
    ],
  ],
];
