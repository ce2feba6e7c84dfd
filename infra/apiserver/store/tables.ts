// Where in PostgreSQL does the embedded cluster live?

/** Two tables: what is, and what happened (for watches). `json`, not `jsonb`: the order of members and \u0000 survive. */
export const tables = `
create table if not exists cluster_objects (
  resource  text not null,
  namespace text not null,
  name      text not null,
  revision  bigint not null,
  object    json not null,
  primary key (resource, namespace, name)
);
create table if not exists cluster_log (
  revision  bigint primary key,
  type      text not null,
  resource  text not null,
  namespace text not null,
  name      text not null,
  object    json not null,
  previous  json
);`;

/** One statement, so one transaction, for a batch in which no key comes twice: $1…$7 the log, $8 revisions to forget up to. */
export const writeBatch = `
with batch as (
  select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::json[], $7::json[])
    as b(revision, type, resource, namespace, name, object, previous)
), logged as (
  insert into cluster_log select * from batch
), gone as (
  delete from cluster_objects o using batch b
  where b.type = 'DELETED' and (o.resource, o.namespace, o.name) = (b.resource, b.namespace, b.name)
), forgotten as (
  delete from cluster_log where revision <= $8
)
insert into cluster_objects (resource, namespace, name, revision, object)
select resource, namespace, name, revision, object from batch where type <> 'DELETED'
on conflict (resource, namespace, name) do update set revision = excluded.revision, object = excluded.object`;
