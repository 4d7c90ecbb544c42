package migrations

// Payload is the SQL of an event's payload, in a query with one table events: it
// stands in the row, or in blobs if it is large. As each blob is there once, two
// payloads are equal if both columns are.
const Payload = "coalesce(payload, (SELECT text FROM blobs WHERE key = blob))"
