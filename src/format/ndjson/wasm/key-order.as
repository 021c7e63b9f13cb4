/**
 * Which key is likely to follow. Keys are expected in the order in which they came before, and where several followed one
 * (rows of other kinds, fields that some rows leave out) in the order in which those took turns.
 *
 * A graph of steps. A step is a key within a kind of row; what tells kinds apart is the key that was taken where several
 * had followed, the last of them in the row. So rows of ten kinds that share fields find each their own way through
 * them, and optional fields cost at most one step for each pair of keys. All of it is a guess: a key that does not stand
 * where it was expected is looked up.
 */

import { AFTER, FORKS, KEY, KIND_KEY, LAST, LIKELY, STEP_BYTES } from "./layout";

/** Addresses of steps by hash, `placeMask + 1` of them, and behind them the steps. */
let places: usize = 0;
let placeMask: u32 = 0;
let firstStep: usize = 0;
let nextStep: usize = 0;
let lastStep: usize = 0;

/** Takes an area of 4 bytes a place and `STEP_BYTES` for every second. */
export function resetSteps(area: usize, mask: u32): void {
  places = area;
  placeMask = mask;
  firstStep = area + ((<usize>mask + 1) << 2);
  lastStep = firstStep + ((<usize>mask + 1) >> 1) * STEP_BYTES;
  forgetSteps();
}

/** Forgets all of them but the one in front of a row's first key. */
function forgetSteps(): void {
  memory.fill(places, 0, firstStep - places);
  nextStep = firstStep;
  newStep(0, 0);
}

/** The step in front of a row's first key. */
@inline
export function rowStart(): usize {
  return firstStep;
}

/** Goes to the step that was expected after this one. */
@inline
export function take(step: usize, next: usize): void {
  store<u32>(step, <u32>next, LAST);
  store<u32>(step, load<u32>(next, AFTER), LIKELY);
}

/** The step of the key that stands after this one, where another was expected or none. */
export function stepTo(step: usize, key: usize): usize {
  const last = <usize>load<u32>(step, LAST);
  if (last != 0) store<u32>(step, 1, FORKS);
  const forks = load<u32>(step, FORKS) != 0;
  const next = find(forks ? key : <usize>load<u32>(step, KIND_KEY), key);
  // The one that looked for it is forgotten as well when all are.
  if (next == 0) return firstStep;
  if (forks && last != 0) store<u32>(last, <u32>next, AFTER);
  take(step, next);
  return next;
}

/** The step of a key within a kind, a new one if need be; 0 when there was no room, and all are forgotten. */
function find(kind: usize, key: usize): usize {
  const hash = <u32>kind * 0x9e3779b1 ^ <u32>key * 0x85ebca6b;
  let at = (hash ^ (hash >> 15)) & placeMask;
  while (true) {
    const place = places + (<usize>at << 2);
    const step = <usize>load<u32>(place);
    if (step == 0) {
      if (nextStep == lastStep) {
        forgetSteps();
        return 0;
      }
      store<u32>(place, <u32>nextStep);
      return newStep(kind, key);
    }
    if (load<u32>(step, KEY) == <u32>key && load<u32>(step, KIND_KEY) == <u32>kind) return step;
    at = (at + 1) & placeMask;
  }
}

function newStep(kind: usize, key: usize): usize {
  const step = nextStep;
  nextStep += STEP_BYTES;
  memory.fill(step, 0, STEP_BYTES);
  store<u32>(step, <u32>key, KEY);
  store<u32>(step, <u32>kind, KIND_KEY);
  store<u32>(step, <u32>step, AFTER);
  return step;
}
