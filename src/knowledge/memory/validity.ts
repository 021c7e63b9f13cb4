import type { LifeCycle } from "./model.ts";

type Origin = Pick<LifeCycle, "originUpdatedAtUs" | "contentHash">;

/** Whether `a` prevails over `b` of the same id, on every replica. */
export function prevails(a: Origin, b: Origin): boolean {
  if (a.originUpdatedAtUs !== b.originUpdatedAtUs) return a.originUpdatedAtUs > b.originUpdatedAtUs;
  return a.contentHash > b.contentHash;
}

/**
 * The version of one id that held at a time. A version decides from its `validFromUs` on, for all later times, unless
 * another one that prevails over it decides: it holds until its `validToUs`, and after that nothing does. So a fact that
 * was replaced today still held yesterday, and one that was invalidated does not come back as what it was before.
 */
export function validAt<S extends Origin & Pick<LifeCycle, "validFromUs" | "validToUs">>(
  versions: readonly S[],
  atUs: number,
): S | undefined {
  let decides: S | undefined;
  for (const version of versions) {
    if (version.validFromUs <= atUs && (decides === undefined || prevails(version, decides))) decides = version;
  }
  const isOver = decides?.validToUs !== undefined && decides.validToUs <= atUs;
  return isOver ? undefined : decides;
}
