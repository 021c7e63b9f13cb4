import { expect, test } from "vitest";
import { uniqueNames } from "./projection.ts";

test("names of one JSON object are unique without regard to case, and stable", () => {
  expect(uniqueNames(["a", "b"])).toEqual(["a", "b"]);
  expect(uniqueNames(["a", "a", "A", "b"])).toEqual(["a", "a_1", "A_2", "b"]);
  expect(uniqueNames(["a", "a", "a_1", "a_1"])).toEqual(["a", "a_2", "a_1", "a_1_1"]);
});
