// Configurations of the Workers, as `wrangler` reads them. Tests run the Workers with the same flags.

const common = { compatibility_date: '2026-07-01', compatibility_flags: ['nodejs_compat'] };

export const WORKERS = {
  /** No public route: a cron trigger every minute, and triggers of the admission webhook by service binding. */
  reconcile: {
    ...common,
    name: 'gateway-operator-reconcile',
    workers_dev: false,
    triggers: { crons: ['* * * * *'] },
  },
  /** On a public address. */
  admission: {
    ...common,
    name: 'gateway-operator-admission',
    services: [{ binding: 'RECONCILE', service: 'gateway-operator-reconcile' }],
  },
  /**
   * The gateway of one instance. With `enable_request_signal` it detects a client that leaves, and stops the call to
   * the provider.
   */
  gateway: {
    ...common,
    name: 'gateway-operator-gateway',
    compatibility_flags: ['nodejs_compat', 'enable_request_signal'],
  },
} as const;

export type WorkerName = keyof typeof WORKERS;
