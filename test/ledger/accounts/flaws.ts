// Flaws that are planted in the model, one at a time: the search must find each.
export const FLAWS = [
  'escrow is used before the store has granted it',
  'a repeated call is done again',
  'closed accounts go on',
  'a closer does not look what was booked',
  'two closers charge an account',
  'what was not told is booked',
  'a closed account is booked',
  'a sleeper takes nothing back',
  'absent is zero',
  'a process that was away books before it tells',
  'escrow of a higher limit is used',
  'a counter leaves while its window lasts',
  'a reply ends that no risk in the store covers',
  'one risk covers each of two replies',
  'a stream needs no risk',
  'a call under way counts as not done',
  'a call under way counts as done',
  'a closed account is opened again by a late call',
  'an account is closed in absent counters',
  'an old snapshot is charged',
  'a marking is no call',
  'an audit is no call',
  'PostgreSQL learns no count from a closing',
  'a Worker that releases its hold closes no account',
  'nobody sweeps after a stop that the store knows nothing of',
  'an account that a stop has closed is charged',
  'an account is forgotten before its last batch is booked',
  'the escrow of a marked account is free',
] as const;
export type Flaw = (typeof FLAWS)[number];

export const isPlanted = ({ flaw }: { readonly flaw?: Flaw }, asked: Flaw): boolean => flaw === asked;
