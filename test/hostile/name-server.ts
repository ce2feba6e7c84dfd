// A name server on loopback that has one name, and never answers questions about others.
import { createSocket } from 'node:dgram';
import { type AddressInfo, isIPv6 } from 'node:net';

const HEADER = 12;
const TYPE_A = 1;
const TYPE_AAAA = 28;
/** Flags of a response without an error. */
const RESPONSE = [0x81, 0x80];
/** The name of the question, class IN, five seconds: by type. */
const record = (type: number, address: ReadonlyArray<number>) =>
  Buffer.from([0xc0, HEADER, 0, type, 0, 1, 0, 0, 0, 5, 0, address.length, ...address]);
const IPV4 = record(TYPE_A, [127, 0, 0, 1]);
const IPV6 = record(TYPE_AAAA, [...Array<number>(15).fill(0), 1]);

/** The name has the loopback address of the family of `host`, on which the server listens. */
export async function startNameServer(
  name: string,
  host = '127.0.0.1',
  port = 0,
): Promise<{ readonly address: string; stop(): void }> {
  const wire = name
    .split('.')
    .map((label) => String.fromCharCode(label.length) + label)
    .join('');
  const [type, answer] = isIPv6(host) ? [TYPE_AAAA, IPV6] : [TYPE_A, IPV4];
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  socket.on('message', (question, from) => {
    const end = question.indexOf(0, HEADER);
    if (question.toString('latin1', HEADER, end).toLowerCase() !== wire) return;
    const answers = question.readUInt16BE(end + 1) === type ? [...answer] : [];
    const counts = [0, 1, 0, answers.length === 0 ? 0 : 1, 0, 0, 0, 0];
    const head = [...question.subarray(0, 2), ...RESPONSE, ...counts, ...question.subarray(HEADER, end + 5)];
    socket.send(Buffer.from([...head, ...answers]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(port, host, resolve));
  const bound: AddressInfo = socket.address();
  return { address: `${host}:${bound.port}`, stop: () => void socket.close() };
}
