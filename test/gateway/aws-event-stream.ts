// Frames of AWS's event stream, as Bedrock sends them.
import { crc32 } from 'node:zlib';

/** A frame with these headers, all of which are texts. */
export function frame(headers: Readonly<Record<string, string>>, payload: string): Uint8Array {
  const head = Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7, value.length >> 8, value.length & 0xff]),
      Buffer.from(value),
    ]),
  );
  return frameOf(head, payload);
}

/** A frame with these bytes as its headers. */
export function frameOf(head: Uint8Array, payload: string): Uint8Array {
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  const whole = Buffer.concat([prelude, checksum(prelude), head, body]);
  return Buffer.concat([whole, checksum(whole)]);
}

/** An event of Anthropic in a frame of Bedrock. */
export function chunkFrame(event: unknown): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64');
  const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' };
  return frame(headers, JSON.stringify({ bytes, p: 'abcdefgh' }));
}

export function exceptionFrame(type: string, message: string): Uint8Array {
  return frame({ ':exception-type': type, ':message-type': 'exception' }, JSON.stringify({ message }));
}

/** The events of a text of server-sent events, each in a frame. */
export function framed(text: string): Uint8Array {
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
  return Buffer.concat(events.map(chunkFrame));
}

export const FRAMED = { 'content-type': 'application/vnd.amazon.eventstream' };

function checksum(of: Uint8Array): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(of), 0);
  return sum;
}
