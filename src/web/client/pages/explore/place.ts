import { ApiError } from "../../base/api-error.ts";

/**
 * What was asked for, with the place of a failure in the condition that the user typed. That begins in the second line of
 * every text that is sent, behind its bracket (`conditionSql`); what stands in the first line nobody typed.
 */
export async function placedInCondition<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof ApiError ? placed(error) : error;
  }
}

function placed(error: ApiError): ApiError {
  const { line, column, ...details } = error.details;
  if (line === undefined) return error;
  return new ApiError(error.status, line < 2 ? details : { ...details, line: line - 1, column }, { cause: error });
}
