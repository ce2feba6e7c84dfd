// Every metric that the functions expose (docs/reference/metrics.md is generated from this).

/** The meaning of each label. `gateway_instance` is on every metric of a gateway, beside those of the row. */
export const METRIC_LABELS = {
  gateway_instance: '`NAMESPACE/NAME` of the GatewayInstance. On every metric of the gateway and of the ledger',
  route: 'the route, such as `/chat/completions`',
  model: 'the model name that the client used; empty if the instance does not have this model',
  status: 'the HTTP status of the reply',
  code: 'the error code of the reply, or how a reply ended: `complete`, `cut`, `broken`, `failed`, `timeout`, `client_left`',
  identifier: '`identifier` of the model entry',
  outcome: 'how an attempt, a reservation or an action ended; the row lists the values',
  kind: 'a kind of tokens, reservations or objects; the row lists the values',
  step: 'the work that failed; the row lists the values',
  action: 'the action of the reconciler, such as `PutSecret`',
  team_namespace: 'namespace of the Team',
  team: 'name of the Team',
  key_namespace: 'namespace of VirtualKeys',
  verb: '`mutate` or `validate`',
  result: 'the answer to the API server; the row lists the values',
  rule: 'the rule that refused an object, such as `Malformed`',
} as const;
type LabelName = keyof typeof METRIC_LABELS;

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: ReadonlyArray<LabelName>;
}

const counter = (help: string, labels: MetricRow['labels'] = []): MetricRow => ({ type: 'counter', help, labels });
const gauge = (help: string, labels: MetricRow['labels'] = []): MetricRow => ({ type: 'gauge', help, labels });
const histogram = (help: string, labels: MetricRow['labels'] = []): MetricRow => ({ type: 'histogram', help, labels });

export const METRIC_GROUPS: Readonly<Record<string, Readonly<Record<string, MetricRow>>>> = {
  Gateway: {
    gateway_operator_requests_total: counter('Requests that have ended, by status and code.', [
      'route',
      'model',
      'status',
      'code',
    ]),
    gateway_operator_requests_in_flight: gauge(
      'Requests of this process that have begun and not ended, open streams included; only routes that reach a provider. `workload.scale.targetRequestsInFlight` scales by it.',
    ),
    gateway_operator_request_seconds: histogram('Time from the beginning of a request to the end of its reply.', [
      'route',
      'model',
    ]),
    gateway_operator_first_byte_seconds: histogram(
      'Time from the beginning of a request to the first byte of its stream. Only streams.',
      ['route', 'model'],
    ),
    gateway_operator_tokens_total: counter('Tokens that were charged; kind is `input` or `output`.', [
      'route',
      'model',
      'kind',
    ]),
    gateway_operator_cost_dollars_total: counter(
      'Money that was charged, for graphs: a float is not exact. status.currentSpend and PostgreSQL are exact.',
      ['route', 'model'],
    ),
    gateway_operator_estimated_replies_total: counter(
      'Replies that were charged by an estimate, since the provider reported no usage.',
      ['route', 'model'],
    ),
    gateway_operator_unpriced_searches_total: counter(
      'Web searches that a provider reported and that have no price in the model entry: they are not charged.',
      ['route', 'model'],
    ),
    gateway_operator_replies_above_reservation_total: counter(
      'Replies that cost more than their reservation, by route and model, counted once their charge is durable. A series appears with its first count, so alerts use `gateway_operator_ledger_overruns_total`.',
      ['route', 'model'],
    ),
    gateway_operator_upstream_attempts_total: counter(
      'Attempts at a model entry; outcome is `answered`, `skipped` or the error code of the attempt.',
      ['identifier', 'outcome'],
    ),
    gateway_operator_cooldowns_total: counter('Cooldowns of a model entry that have begun.', ['identifier']),
  },
  Ledger: {
    gateway_operator_ledger_reservations_total: counter(
      'Requests for a reservation; outcome is `reserved`, `exceeded` (budget), `held` (requests in flight have the rest), `limited` (rate) or `unavailable`.',
      ['outcome'],
    ),
    gateway_operator_ledger_reservation_ends_total: counter(
      'Reservations that have ended; kind is `settled` (charged) or `released` (not charged).',
      ['kind'],
    ),
    gateway_operator_ledger_unbooked: gauge(
      'Settled charges that are not in PostgreSQL yet. From 100,000 on, requests get 503.',
    ),
    gateway_operator_ledger_unbooked_age_seconds: gauge(
      'Age of the oldest settled charge that is not in PostgreSQL yet. From 30 seconds on, requests get 503.',
    ),
    gateway_operator_ledger_rejected_total: counter(
      'Ledger rows that PostgreSQL refused: they are in the table entry_rejected.',
    ),
    gateway_operator_ledger_overruns_total: counter(
      'Replies that cost more than their reservation, without labels: also those whose charge is not durable yet, and requests that are charged at a stop or after an hour. It begins with 0, so alerts use it.',
    ),
    gateway_operator_ledger_rebuilds_total: counter(
      'Rebuilds of the counters from PostgreSQL, after Redis had lost data or was replaced by another Redis.',
    ),
    gateway_operator_ledger_audit_differences_total: counter(
      'Counters in Redis that differed from the sum of their ledger rows, and were repaired.',
    ),
    gateway_operator_ledger_store_calls_total: counter(
      'Calls to Redis. One call carries all that has changed: there are far fewer calls than requests.',
    ),
    gateway_operator_ledger_store_failures_total: counter('Calls to Redis that failed. Each is repeated.'),
    gateway_operator_ledger_booking_failures_total: counter('Bookings in PostgreSQL that failed. Each is repeated.'),
    gateway_operator_ledger_failures_total: counter(
      'Other work in the background that failed, each with a line in the log. Steps that fail because of Redis, PostgreSQL or the disk: `heartbeat`, `join`, `sums`, `audit`, `maintenance`, `close`, `stop`, `disk`, `sync`, `compaction`. Steps that fail because of our error (please report it): `request`, `cost`, `notice`, `call`, `timer`, `charge`, `records`.',
      ['step'],
    ),
  },
  Reconciler: {
    gateway_operator_reconcile_last_resync_timestamp_seconds: gauge(
      'Unix time at which the last resync ended; before the first one, the start of the process.',
    ),
    gateway_operator_reconcile_duration_seconds: histogram(
      'Time of a run of the reconciler: a resync, or for a trigger.',
    ),
    gateway_operator_reconcile_observed: gauge('Objects that the last run has read, by Kubernetes kind.', ['kind']),
    gateway_operator_reconcile_actions_total: counter(
      'Actions of runs; outcome is `done`, `conflict`, `failed` or `skipped`.',
      ['action', 'outcome'],
    ),
    gateway_operator_reconcile_oldest_unconverged_seconds: gauge(
      'Age of the oldest object that does not match its spec, by Kubernetes kind; 0 if all match. Blocked, expired and exhausted VirtualKeys match.',
      ['kind'],
    ),
    gateway_operator_reconcile_deferred_keys: gauge('Changed VirtualKeys that the last resync left to the next one.'),
    gateway_operator_reconcile_oversized_namespaces: gauge(
      'Namespaces whose objects are too large together for the reconciler: only deletions and blocks are handled there.',
    ),
    gateway_operator_reconcile_guarded_deletions_total: counter(
      'Deletions that the deletion guard prevented, because there were too many at the same time.',
      ['action'],
    ),
    gateway_operator_reconcile_forced_finalizations_total: counter(
      'Deleted objects whose finalizer was removed although their database could not be updated, by Kubernetes kind.',
      ['kind'],
    ),
    gateway_operator_team_spend_dollars: gauge('Spend of a Team in its current window, at the last resync.', [
      'team_namespace',
      'team',
    ]),
    gateway_operator_team_budget_dollars: gauge('maxBudget of a Team, at the last resync.', ['team_namespace', 'team']),
    gateway_operator_namespace_spend_dollars: gauge(
      'Spend of the keys of a namespace on an instance in its current window, at the last resync. Only with a `perNamespace` budget.',
      ['gateway_instance', 'key_namespace'],
    ),
    gateway_operator_namespace_budget_dollars: gauge('perNamespace.maxBudget of a namespace, at the last resync.', [
      'gateway_instance',
      'key_namespace',
    ]),
    gateway_operator_archive_waiting_days: gauge(
      'Days that ended 48 hours ago and have ledger rows that the archive may lack. Only with `ARCHIVE_URL`.',
    ),
    gateway_operator_certificate_expiry_timestamp_seconds: gauge(
      'Unix time at which the certificate of the admission webhook expires.',
    ),
    gateway_operator_certificate_actions_total: counter(
      'Actions on the certificate of the admission webhook; outcome is `done` or `failed`.',
      ['action', 'outcome'],
    ),
  },
  'Admission webhook': {
    gateway_operator_admission_reviews_total: counter(
      'Reviews; kind is the Kubernetes kind, result is `allowed`, `refused`, `malformed` or `failed`.',
      ['verb', 'kind', 'result'],
    ),
    gateway_operator_admission_seconds: histogram('Time of a review.', ['verb']),
    gateway_operator_admission_refusals_total: counter(
      'Refused objects, by rule. An object that breaks two rules counts for both.',
      ['rule'],
    ),
  },
};

/** The row of each metric, by its name. */
export const METRICS: ReadonlyMap<string, MetricRow> = new Map(
  Object.values(METRIC_GROUPS).flatMap((group) => Object.entries(group)),
);
