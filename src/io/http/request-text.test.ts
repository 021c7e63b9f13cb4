import { expect, test } from "vitest";
import { textAddress, textOfAddressBytes } from "./request-text.ts";

test("writes addresses as people do", () => {
  expect(textOfAddressBytes(new Uint8Array([127, 0, 0, 1]))).toBe("127.0.0.1");
  expect(textOfAddressBytes(new Uint8Array([...Array<number>(10).fill(0), 255, 255, 10, 0, 0, 7]))).toBe("10.0.0.7");
  expect(textOfAddressBytes(new Uint8Array([...Array<number>(15).fill(0), 1]))).toBe("::1");
  expect(textOfAddressBytes(new Uint8Array([0x20, 1, 0xd, 0xb8, ...Array<number>(10).fill(0), 1, 2]))).toBe(
    "2001:db8::102",
  );
  expect(textOfAddressBytes(new Uint8Array(0))).toBe("");
  expect(textAddress("::ffff:10.0.0.7")).toBe("10.0.0.7");
  expect(textAddress("::1")).toBe("::1");
});
