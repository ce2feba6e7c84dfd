// Protobuf bodies are read as kubectl meant them: the golden file has bodies that kubectl 1.32 sent.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeProtobuf, ProtobufError } from '../../../infra/apiserver/codec/protobuf.ts';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';

const sent: Record<string, { body: string; object: JsonObject }> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'kubectl.golden.json'), 'utf8'),
);
const bytesOf = (command: string) => new Uint8Array(Buffer.from(sent[command]?.body ?? '', 'base64'));

describe('what kubectl sends as protobuf', () => {
  test.each(Object.keys(sent))('%s', (command) => {
    expect(decodeProtobuf(bytesOf(command))).toEqual(sent[command]?.object);
  });

  test('a kind that is not known is named in the error', () => {
    const text = (number: number, value: string) => [number * 8 + 2, value.length, ...Buffer.from(value)];
    const meta = [...text(1, 'example.dev/v1'), ...text(2, 'Thing')];
    const body = new Uint8Array([...Buffer.from('k8s\0'), 10, meta.length, ...meta]);
    expect(() => decodeProtobuf(body)).toThrow('Thing (example.dev/v1) cannot be read as protobuf; send JSON');
  });

  test('JSON is not taken for protobuf', () => {
    expect(() => decodeProtobuf(Buffer.from('{"kind":"Secret"}'))).toThrow(ProtobufError);
  });

  test('a body that is cut short or garbled is refused, never half read into another failure', () => {
    const whole = bytesOf('kubectl create deployment p-g --image=a:1 --replicas=0 --port=80');
    expect(whole.length).toBeGreaterThan(100);
    const bodies = fc.tuple(fc.nat(whole.length - 1), fc.uint8Array({ maxLength: 40 }), fc.nat(whole.length));
    fc.assert(
      fc.property(bodies, ([at, noise, cut]) => {
        const garbled = Uint8Array.from(whole);
        garbled.set(noise.subarray(0, whole.length - at), at);
        try {
          decodeProtobuf(garbled.subarray(0, cut));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError);
        }
      }),
      { numRuns: 500 },
    );
  });
});
