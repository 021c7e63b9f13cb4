import type { Dispatcher } from "undici";

/** The body of an answer as text. Throws where it is longer, without having kept more of it. */
export async function cappedText(body: Dispatcher.ResponseData["body"], maxChars: number): Promise<string> {
  body.setEncoding("utf8");
  let text = "";
  for await (const piece of body) {
    text += String(piece);
    if (text.length > maxChars) throw new Error(`it answers more than ${maxChars} characters`);
  }
  return text;
}
