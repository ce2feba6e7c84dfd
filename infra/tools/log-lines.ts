// Times of log lines: the column *when* of docs/reference/log.md. `npm run generate` names a line of the source that
// has no row here, and a row that has no line.

/**
 * A message as the page shows it, and when it is written. Causes and advice are in the message, in `why` or in alerts.
 */
export const WHEN: Readonly<Record<string, string>> = {
  // Gateway.
  'a model entry cools down':
    'A model entry has failed as often as `routing.cooldown` allows, or its provider has asked to wait. `onlyFor`: only for this VirtualKey or namespace',
  'a request failed with an internal error': 'The code of the gateway threw an error: the client gets `internal_error`',
  'cannot settle a reply':
    'A reply has ended, and its charge could not be made durable. Another process charges the request later',
  request: 'A request has ended. The level is that of its [error code](../use/errors.md), or of how its reply ended',

  // Ledger and Redis.
  'ledger: a call to the counter store failed, and is repeated':
    'The first of several failed calls to Redis, of one process',
  'ledger: the counter store answers calls again': 'The first call after it that succeeds',
  'the connection to the counter store ended, and is opened again':
    'The connection to Redis has ended. Once, until Redis is connected again',
  'the counter store is connected again': 'Redis is connected again',
  'another process has taken over the journal: this process no longer writes to it, and its replies wait for PostgreSQL; stop one of them, or give it another folder':
    'Once, within a second after a second process has opened the same folder. `by` names it',
  'ledger: PostgreSQL accepts ledger rows again': 'The first booking that succeeds after failed ones',
  'ledger: PostgreSQL accepts the heartbeat again': 'The first heartbeat that succeeds after failed ones',
  'ledger: PostgreSQL refused a ledger row, which is in the table entry_rejected':
    'Once per refused row, after its booking, with the row and the reason',
  'ledger: PostgreSQL refused ledger rows, which are in the table entry_rejected':
    'After a booking in which PostgreSQL refused rows; `ids` are those of the requests',
  'ledger: a counter differed from the sum of its ledger rows, and was repaired':
    'An audit has compared a counter of Redis with PostgreSQL. `by` is the difference. At most five counters of an audit are named; `others` is the number of the others',
  'ledger: a reply cost more than its reservation': 'At the end of such a request: it is charged what it cost',
  'ledger: the code of a call to the counter store failed, so the process opens a new account (our error)':
    'The code of the ledger threw an error while it made a call to Redis or applied the reply; `why` has the error',
  'ledger: a request had not ended at the stop, and is charged':
    'At a stop, once per request in flight after the time that requests have to end',
  'ledger: a request that never ended cannot be charged': 'The settlement after one hour failed',
  'ledger: a request whose account was closed cannot be stopped (our error)':
    'The code of the ledger threw an error when it notified a stream that its account was closed',
  'ledger: a reservation did not end within an hour, and is charged': 'A request is one hour old and has not ended',
  'ledger: a step of the stop failed; another process closes the account when its lease ends':
    'At a stop, if Redis or PostgreSQL does not answer in time',
  'ledger: a timer failed (our error)': 'The code of the ledger threw an error in regular work',
  'ledger: an account cannot be closed':
    'A resync cannot close the account of a process that has died. The next one tries again',
  'ledger: an account was closed after the end of its lease; its requests in flight and unbooked spend are charged, in one ledger row per counter':
    'A process was killed or cut off from Redis for 20 s, and another process or a resync has closed its account',
  'ledger: another process has closed the account, because this process made no call for 20 s; the charges for it are corrected':
    'A process reaches Redis again after more than 20 s without a call',
  'ledger: booking in PostgreSQL failed, and is repeated':
    'The first of several failed bookings, and each one with a new cause',
  'ledger: charges of previous accounts are corrected, since their requests are booked one by one':
    'A process has its journal back after a crash, and another process had charged its requests in the meantime',
  'ledger: counters cannot be audited, because too many charges are not booked yet; the next audit compares them':
    'More than 500 gateway processes (on Workers: requests) have charges that PostgreSQL does not have yet',
  'ledger: records that are not needed stay in the journal (our error)':
    'The code of the journal threw an error when it dropped records',
  'ledger: no reservation can be made for a request (our error)':
    'The code of the ledger threw an error: the client gets `ledger_unavailable`',
  'ledger: recovered the journal': 'At the start of a process whose journal has records. `rows`: charges that it books',
  'ledger: stopped with unbooked requests; a start on the same disk books them, else another process charges them':
    'At a stop, if Redis or PostgreSQL did not take all charges in time',
  'ledger: sums are loaded again': 'Sums of PostgreSQL are in Redis after loading had failed',
  'ledger: sums cannot be loaded into the counter store; loading is repeated':
    'The first of several failed attempts to read sums from PostgreSQL and write them to Redis, and each one with a new cause',
  'ledger: the cost of a request so far is unknown, so its whole reservation counts (our error)':
    'The code of the gateway threw an error while it counted the cost of a stream',
  'ledger: the counters of the counter store cannot be audited':
    'An audit ended early, because Redis or PostgreSQL did not answer',
  'ledger: the disk refuses the journal, which is discarded; until a restart, replies wait for PostgreSQL':
    'Once, at the first write that the disk refuses: it is full, read-only or broken',
  'ledger: the heartbeat in PostgreSQL failed, and is repeated':
    'The first of several failed heartbeats, and each one with a new cause',
  'ledger: the process cannot join the epoch, and tries again':
    'After a start or a loss of data of Redis, while PostgreSQL or Redis does not answer; once per cause',
  'ledger: the process has joined the epoch': 'The process serves requests again after such a failure',
  'ledger: this process moves the counters to another counter store, and builds them from PostgreSQL':
    'The Secret of Redis has another host or port, and this new process has reached that Redis',
  'ledger: the counter store has lost state, and is rebuilt from PostgreSQL':
    'One process has noticed that Redis is empty or older than before; requests wait for the rebuild',
  'the discarded journal cannot be deleted: if the process is killed while it is there, its requests are charged less than they cost; check the disk':
    'Once, when the journal is discarded and its files cannot be deleted. The process tries again each second',
  'the journal cannot be synced: a kill of the process loses nothing, but a power loss may lose everything since the last sync; check the disk':
    'The first failed `fsync`, and each one with a new cause',
  'the journal could not be compacted': 'Copying the needed records to a new file failed. Later tries follow',
  'the journal has damaged lines, which were skipped: a reservation without its settlement is charged its whole amount, a request without any line is not charged':
    'At a start, once per file whose lines have a wrong checksum. `lines` counts them',
  'the journal is synced again': 'The first `fsync` that succeeds after failed ones',

  // Reconciler.
  'a database lacks the schema of this version':
    'A run reads an instance whose database is new, or has the schema of another version. In a new one the same run creates the schema; another version is an error',
  'a database was migrated': 'A run has created the schema in a new database. `to` is its version',
  'a deletion was forced':
    'A finalizer was removed after 20 s in which the database did not answer, or did not have the instance. `notCleanedUp` names what stays in the database',
  'a namespace is oversized: its VirtualKeys, Users and Teams are too large together, and stay as they are; delete or shorten the largest of them':
    'Each resync, while the objects of one namespace do not fit the memory of the reconciler',
  'a namespace cannot be read':
    'The API server refused or did not answer when a run read the labels of a namespace, for `allowedNamespaces` or `keyPolicies`. Working keys there continue working, and the last key policy stays. If `allowedNamespaces` needs the labels, then until they can be read, new keys get no value, and no edit takes effect except `blocked: true`',
  'a part of a run failed':
    'An unexpected error has ended the work on the instances that `instances` lists. The next run repeats it',
  'a run ended early: cannot read the cluster': 'The API server did not answer, or refused, while a run read objects',
  'an action failed':
    'A write of a run failed, in the cluster or in a database; `action` names it. The next run repeats it',
  'cannot book all settled charges':
    'Redis or PostgreSQL did not answer within 15 s when a resync booked charges. Spend in statuses is older until the next resync',
  'cannot clear the stores of a deleted instance':
    'After the deletion of an instance whose Redis does not answer. Its counters stay there, and nothing reads them any more',
  'cannot make or drop days of ledger rows':
    'PostgreSQL refused or did not answer when a resync made the partitions of the next 7 days, or dropped those older than `RETAIN_DAYS`. The next resync continues. If it lasts for a week, bookings fail: check whether the user in the Secret of the database owns the tables',
  'cannot sum up usage':
    'PostgreSQL refused or did not answer when a resync added the usage of new batches to that of their days. Reports have all usage even so. The next resync continues',
  'a file of the archive lacks ledger rows; it is written again, and its day stays in PostgreSQL':
    'Before a day is dropped, its files are read back. This file is missing, damaged or another one: check who writes to the folder of [the archive](../operate/archive.md)',
  'cannot write the key policies of an instance before its VirtualKeys are read':
    'An edit of an instance is first written for each namespace, so that it is in force in seconds; this failed. The run that follows writes it again, after it has read all VirtualKeys',
  'cannot write days of ledger rows to the archive; they stay in PostgreSQL':
    '[The archive](../operate/archive.md) refused or did not answer, or PostgreSQL did; `why` has what to check. No day is dropped meanwhile. The next resync continues',
  'the archive ended with an error (our error)':
    'A resync of [the archive](../operate/archive.md) ended early. The next one continues, and no day is dropped meanwhile. Report it',
  'cannot list instances of a database':
    'A resync looked in a database for instances that no longer exist in the cluster, and got an error',
  'cannot read an instance': 'Reading what an instance needs failed or took too long. Its objects stay as they are',
  'cannot read the Secret of a VirtualKey':
    'The API server refused or did not answer when a run read the Secret of a VirtualKey. Its value stays',
  'cannot read the identity of the cluster': 'The namespace `kube-system` could not be read. The next run tries again',
  'certificate of the admission webhook: …':
    'A resync has issued, trusted or written a certificate. The name of the step ends the line, and `why` is its reason',
  'deletions are guarded: a run would remove more than is plausible':
    'Each run that leaves deletions undone, see [delete keys](../guides/delete-keys.md)',
  'nothing is created in a namespace that is being deleted': 'A run wanted to create an object in such a namespace',
  reconciled: 'Each run that did or failed to do something, with its numbers. A run without changes writes nothing',
  'reconciler: cannot issue or renew the certificate of the admission webhook':
    'Each resync that fails to do so. The webhook keeps its certificate until that expires',
  'the ledger of an instance begins empty':
    'An instance was open before, and its database has nothing of it: the database is another one, or lost its data',
  "… … does not exist, so the API server does not call the admission webhook: install the operator's manifests again":
    'Each resync, while a webhook configuration is missing',
  '…: delete the Secret; then …':
    "Each resync in the last tenth of the life of a certificate that is not the operator's. The line begins with the Secret",

  // PostgreSQL.
  'an idle database connection broke':
    'The database or a proxy has closed a connection that was not in use. A new one follows',
  'the database offers no TLS, so the connection is plain text; `sslmode: require` would refuse it':
    'Once per process and database, with `sslmode: prefer`, the default',
  'the login of the database has changed':
    'The database had refused the previous login, and the mounted Secret has another one, which is tried now',

  // Start, stop and the surroundings of each function.
  'SNAPSHOTS has no snapshot of … that can be used':
    'On Workers, each request to an instance that the reconciler has not published',
  'admission failed': 'A review ended with an error, so the API server gets no decision',
  admission: 'Each review, with its decision and the rules that refused',
  'cannot send a trigger; the next resync finds the change': 'After a review, if the reconciler does not answer',
  'certificate not renewed':
    'The certificate files changed, and cannot be used. The webhook keeps the previous certificate',
  'certificate renewed': 'The certificate files changed, and the webhook serves the new certificate',
  'gateway: cannot close everything after a failed start':
    'The start of a gateway failed, and so did part of the cleanup',
  'gateway: cannot close its connections': 'On Workers, at the end of a request',
  listening: 'The function accepts requests. `url` is its address, `metrics` that of metrics and probes',
  'days of ledger rows were dropped; sums of current windows stay': 'A resync has applied `RETAIN_DAYS`',
  'not answered': 'On Workers, an invocation ended with an error: the caller gets 500',
  'requests were not charged at the stop': 'At a stop, charging the requests in flight failed',
  stopped: 'The function has ended after SIGTERM or SIGINT',
  'the ledger does not start yet, and tries again':
    'Once, at the start of a gateway, if PostgreSQL or Redis does not answer. Requests get 503 until it does',
  'the resync at the start failed; the schedule repeats it':
    'The reconciler has `RESYNC_AT_START`, and that resync did not succeed within 50 s',
  'the snapshot is not used':
    'The snapshot was read and is of another version or malformed. The gateway keeps the previous one',
  'the stop did not end within … ms': 'The function is ended with code 1, because its stop took too long',
  'traces: the collector refused spans': 'The collector did not answer, or refused. These spans are lost',
};
