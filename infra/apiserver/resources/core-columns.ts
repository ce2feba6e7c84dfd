// Which columns has `kubectl get` for the core kinds? Those of the real server, as its tables show them.
import { age, humanDuration } from '../codec/age.ts';
import { jsonPath } from '../codec/json-path.ts';
import { type Column, columnsOf } from '../codec/table.ts';
import { isObject, type JsonObject, member } from '../schema/json.ts';

type Cell = (object: JsonObject, now: Date) => unknown;

const column = (name: string, cell: Cell, more: Partial<Column> = {}): Column => ({
  name,
  type: 'string',
  format: '',
  description: '',
  priority: 0,
  ...more,
  cell: cell as Column['cell'], // every cell below is a string, a number, a boolean or null
});
const wide = { priority: 1 };

const [nameColumn, ageColumn] = columnsOf('', '') as [Column, Column]; // what every kind has
const created = column('Created At', (object) => member(object.metadata, 'creationTimestamp') ?? null, {
  type: 'date',
});
const containers = (path: string): Column[] => [
  column('Containers', (object) => each(object, `${path}[*]`, 'name'), wide),
  column('Images', (object) => each(object, `${path}[*]`, 'image'), wide),
  column('Selector', (object) => selectorOf(first(object, '.spec.selector.matchLabels')), wide),
];

const subjects =
  (kind: string): Cell =>
  (object) =>
    list(object.subjects)
      .filter((subject) => subject.kind === kind)
      .map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : `${name}`))
      .join(', ');

const binding: Column[] = [
  nameColumn,
  column('Role', (object) => `${first(object, '.roleRef.kind')}/${first(object, '.roleRef.name')}`),
  ageColumn,
  column('Users', subjects('User'), wide),
  column('Groups', subjects('Group'), wide),
  column('ServiceAccounts', subjects('ServiceAccount'), wide),
];

const webhooks = [
  nameColumn,
  column('Webhooks', (object) => list(object.webhooks).length, { type: 'integer' }),
  ageColumn,
];

const events: Column[] = [
  column('Last Seen', (object, now) => age(object.lastTimestamp ?? object.eventTime ?? object.firstTimestamp, now)),
  column('Type', text('.type')),
  column('Reason', text('.reason')),
  column('Object', (object) => {
    return `${String(first(object, '.involvedObject.kind') ?? '').toLowerCase()}/${first(object, '.involvedObject.name') ?? ''}`;
  }),
  column('Subobject', text('.involvedObject.fieldPath'), wide),
  column('Source', (object) => first(object, '.source.component') || first(object, '.reportingComponent') || '', wide),
  column('Message', (object) => String(object.message ?? '').trim()),
  column('First Seen', (object, now) => age(object.firstTimestamp ?? object.eventTime, now), wide),
  column('Count', (object) => first(object, '.series.count') ?? object.count ?? 1, wide),
  column('Name', (object) => member(object.metadata, 'name') ?? '', { ...wide, format: 'name' }),
];

/** By plural name; a kind that is not here shows its name and age. */
export const coreColumns: Readonly<Record<string, readonly Column[]>> = {
  configmaps: [nameColumn, column('Data', (object) => sizeOf(object.data) + sizeOf(object.binaryData)), ageColumn],
  secrets: [nameColumn, column('Type', text('.type')), column('Data', (object) => sizeOf(object.data)), ageColumn],
  namespaces: [nameColumn, column('Status', text('.status.phase')), ageColumn],
  services: [
    nameColumn,
    column('Type', text('.spec.type')),
    column('Cluster-IP', (object) => first(object, '.spec.clusterIP') ?? '<none>'),
    column('External-IP', (object) => {
      return first(object, '.spec.externalName') ?? (each(object, '.spec.externalIPs[*]', undefined) || '<none>');
    }),
    column('Port(s)', servicePorts),
    ageColumn,
    column('Selector', (object) => selectorOf(first(object, '.spec.selector')), wide),
  ],
  serviceaccounts: [nameColumn, column('Secrets', (object) => list(object.secrets).length), ageColumn],
  events,
  leases: [nameColumn, column('Holder', text('.spec.holderIdentity')), ageColumn],
  pods: [
    nameColumn,
    column('Ready', () => '0/0'),
    column('Status', text('.status.phase')),
    column('Restarts', () => '0'),
    ageColumn,
  ],
  deployments: [
    nameColumn,
    column(
      'Ready',
      (object) => `${first(object, '.status.readyReplicas') ?? 0}/${first(object, '.spec.replicas') ?? 0}`,
    ),
    column('Up-to-date', (object) => String(first(object, '.status.updatedReplicas') ?? 0)),
    column('Available', (object) => String(first(object, '.status.availableReplicas') ?? 0)),
    ageColumn,
    ...containers('.spec.template.spec.containers'),
  ],
  jobs: [
    nameColumn,
    column('Status', jobStatus),
    column(
      'Completions',
      (object) => `${first(object, '.status.succeeded') ?? 0}/${first(object, '.spec.completions') ?? 1}`,
    ),
    column('Duration', jobDuration),
    ageColumn,
    ...containers('.spec.template.spec.containers'),
  ],
  cronjobs: [
    nameColumn,
    column('Schedule', text('.spec.schedule')),
    column('Timezone', (object) => first(object, '.spec.timeZone') ?? '<none>'),
    column('Suspend', (object) => (first(object, '.spec.suspend') === true ? 'True' : 'False'), { type: 'boolean' }),
    column('Active', (object) => list(first(object, '.status.active')).length, { type: 'integer' }),
    column('Last Schedule', (object, now) => {
      const last = first(object, '.status.lastScheduleTime');
      return last === undefined ? '<none>' : age(last, now);
    }),
    ageColumn,
    ...containers('.spec.jobTemplate.spec.template.spec.containers'),
  ],
  poddisruptionbudgets: [
    nameColumn,
    column('Min Available', (object) => String(first(object, '.spec.minAvailable') ?? 'N/A')),
    column('Max Unavailable', (object) => String(first(object, '.spec.maxUnavailable') ?? 'N/A')),
    column('Allowed Disruptions', (object) => first(object, '.status.disruptionsAllowed') ?? 0, { type: 'integer' }),
    ageColumn,
  ],
  roles: [nameColumn, created],
  clusterroles: [nameColumn, created],
  rolebindings: binding,
  clusterrolebindings: binding,
  customresourcedefinitions: [nameColumn, created],
  mutatingwebhookconfigurations: webhooks,
  validatingwebhookconfigurations: webhooks,
};

function first(object: JsonObject, path: string): unknown {
  return jsonPath(path)(object)[0];
}

function text(path: string): Cell {
  const read = jsonPath(path);
  return (object) => String(read(object)[0] ?? '');
}

function list(value: unknown): ReadonlyArray<Record<string, unknown>> {
  return Array.isArray(value) ? value : [];
}

function sizeOf(value: unknown): number {
  return isObject(value) ? Object.keys(value).length : 0;
}

function each(object: JsonObject, path: string, key: string | undefined): string {
  const found = jsonPath(path)(object);
  return found.map((item) => String(key === undefined ? item : member(item, key))).join(',');
}

function selectorOf(labels: unknown): string {
  if (!isObject(labels) || Object.keys(labels).length === 0) return '<none>';
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
}

function servicePorts(object: JsonObject): string {
  const ports = list(first(object, '.spec.ports')).map(({ port, nodePort, protocol }) => {
    return `${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol ?? 'TCP'}`;
  });
  return ports.join(',') || '<none>';
}

function jobStatus(object: JsonObject): string {
  const conditions = list(first(object, '.status.conditions')).filter(({ status }) => status === 'True');
  if (member(object.metadata, 'deletionTimestamp') !== undefined) return 'Terminating';
  for (const type of ['Complete', 'Failed', 'Suspended']) if (conditions.some((one) => one.type === type)) return type;
  return 'Running';
}

function jobDuration(object: JsonObject, now: Date): string {
  const start = first(object, '.status.startTime');
  if (typeof start !== 'string') return '';
  const end = first(object, '.status.completionTime');
  return humanDuration((typeof end === 'string' ? Date.parse(end) : now.getTime()) - Date.parse(start));
}
