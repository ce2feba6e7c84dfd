// The number of random runs of a property.

const { TEST_ALL, TEST_CAMPAIGNS } = process.env;

/** How many fifths of the runs: all of them in `npm run campaigns`, two in CI (`TEST_ALL=1 npm test`), else one. */
const FIFTHS = TEST_CAMPAIGNS ? 5 : TEST_ALL ? 2 : 1;

/** Each run of `npm test` has other random values. */
export const runs = (all: number): number => Math.ceil((all * FIFTHS) / 5);
