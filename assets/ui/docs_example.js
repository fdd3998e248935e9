// Bodies to begin with: what a schema of the OpenAPI document demands, with values that mean something.

// By the name of the member; what is not here is made of its schema.
const kValues = {
  inputs: "Once upon a time", prompt: "Once upon a time", input: "A text",
  messages: [{role: "user", content: "Hello"}], query: "What is tgi?", texts: ["A server.", "A fish."], documents: ["A server.", "A fish."],
  max_tokens: 32, max_new_tokens: 32,
};
// Not demanded, but without them the first try is long, or dull.
const kWelcome = ["max_tokens", "stream", "parameters"];

/** A schema with its references followed. */
export function resolved(schema, document, depth = 0) {
  const name = schema?.$ref?.split("/").pop();
  if (!name || depth > 8) return schema ?? {};
  return resolved(document.components.schemas[name], document, depth + 1);
}

/** The type in words. */
export function typeOf(schema, document) {
  const name = schema?.$ref?.split("/").pop();
  if (name) return name;
  const choices = schema?.oneOf ?? schema?.anyOf;
  if (choices) return choices.map(each => typeOf(each, document)).join(" or ");
  if (schema?.enum) return schema.enum.map(value => JSON.stringify(value)).join(", ");
  if (schema?.type === "array") return `list of ${typeOf(schema.items, document)}`;
  return schema?.type ?? "any";
}

/** A value that the schema takes. */
export function exampleOf(schema, document, depth = 0) {
  const plain = resolved(schema, document);
  if (plain.example !== undefined) return plain.example;
  if (plain.default !== undefined) return plain.default;
  if (plain.enum) return plain.enum[0];
  const choice = (plain.oneOf ?? plain.anyOf)?.[0];
  if (choice) return exampleOf(choice, document, depth + 1);
  if (plain.type === "array") return depth > 4 ? [] : [exampleOf(plain.items, document, depth + 1)];
  if (plain.type === "object" || plain.properties) return depth > 4 ? {} : exampleBody(plain, document, depth + 1);
  return {string: "text", integer: 1, number: 1, boolean: false}[plain.type] ?? null;
}

/** An object with the members that are demanded, and some that are welcome. */
export function exampleBody(schema, document, depth = 0) {
  const plain = resolved(schema, document);
  if (plain.oneOf && !plain.properties) return exampleBody(plain.oneOf[0], document, depth + 1);
  const out = {};
  for (const [name, member] of Object.entries(plain.properties ?? {})) {
    const isRequired = plain.required?.includes(name);
    if (!isRequired && !(depth === 0 && kWelcome.includes(name))) continue;
    if (name === "parameters") out[name] = {max_new_tokens: 32};
    else if (name === "stream") out[name] = true;
    else out[name] = kValues[name] ?? exampleOf(member, document, depth + 1);
  }
  return out;
}
