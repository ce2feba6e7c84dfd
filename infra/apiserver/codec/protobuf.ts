// Which object does a protobuf body hold? kubectl sends the core kinds it knows so.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf } from '#core/reason.ts';
import type { JsonObject } from '../schema/json.ts';
import { definitionName, definitions } from './core-kinds.ts';
import { createReader, type Numbers } from './protobuf-message.ts';

/** A body that cannot be read: not the envelope, cut short, or of a kind without field numbers here. */
export class ProtobufError extends Error {}

const magic = [0x6b, 0x38, 0x73, 0x00]; // "k8s\0"
const messages: Readonly<Record<string, Numbers>> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'core-wire.json'), 'utf8'),
).messages;
const read = createReader(definitions, messages);

/**
 * Decodes `application/vnd.kubernetes.protobuf`: the magic number, then `runtime.Unknown{typeMeta=1, raw=2}`. The object
 * has its apiVersion and kind first, as in JSON. Throws `ProtobufError`.
 */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  if (magic.some((byte, i) => bytes[i] !== byte)) {
    throw new ProtobufError('the body does not begin with the magic number of Kubernetes protobuf');
  }
  const unknown = readable(() => read.fields(bytes.subarray(magic.length)));
  const meta = readable(() => read.fields(unknown.get(1)?.[0] ?? new Uint8Array()));
  const text = (number: number) => Buffer.from(meta.get(number)?.[0] ?? '').toString('utf8');
  const [apiVersion, kind] = [text(1), text(2)];
  const name = definitionName(apiVersion, kind);
  if (name === undefined || messages[name] === undefined) {
    const what = `${kind || 'an object without kind'} (${apiVersion || 'no apiVersion'})`;
    throw new ProtobufError(`this cluster cannot read ${what} as protobuf; send JSON`);
  }
  const object = readable(() => read.message(name, unknown.get(2)?.[0] ?? new Uint8Array()));
  return { apiVersion, kind, ...object };
}

/** A message that is cut short, or JSON inside it that cannot be read, is the sender's fault. */
function readable<T>(step: () => T): T {
  try {
    return step();
  } catch (cause) {
    throw new ProtobufError(`the protobuf body cannot be read: ${reasonOf(cause)}`, {
      cause,
    });
  }
}
