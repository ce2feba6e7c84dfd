// A name server on loopback that has one name, and never answers questions about others.
import { createSocket } from 'node:dgram';
import type { AddressInfo } from 'node:net';

const HEADER = 12;
const TYPE_A = 1;
/** Flags of a response without an error. */
const RESPONSE = [0x81, 0x80];
/** The name of the question, type A, class IN, five seconds, 127.0.0.1. */
const LOOPBACK = [0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 5, 0, 4, 127, 0, 0, 1];

export async function startNameServer(name: string): Promise<{ readonly address: string; stop(): void }> {
  const wire = name
    .split('.')
    .map((label) => String.fromCharCode(label.length) + label)
    .join('');
  const socket = createSocket('udp4');
  socket.on('message', (question, { port, address }) => {
    const end = question.indexOf(0, HEADER);
    if (question.toString('latin1', HEADER, end).toLowerCase() !== wire) return;
    const isIpv4 = question.readUInt16BE(end + 1) === TYPE_A;
    const counts = [0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0];
    const head = [...question.subarray(0, 2), ...RESPONSE, ...counts, ...question.subarray(HEADER, end + 5)];
    socket.send(Buffer.from([...head, ...(isIpv4 ? LOOPBACK : [])]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const { port }: AddressInfo = socket.address();
  return { address: `127.0.0.1:${port}`, stop: () => void socket.close() };
}
