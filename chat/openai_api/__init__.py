"""The /v1/ API, compatible with OpenAI's chat completions.

https://platform.openai.com/docs/api-reference/chat
"""
